// Package grid runs one scenario file as a table: over links of several rates, with several paces of changes and
// several faults.
//
// A Cell is one of them. Its scenario is the file's, but for link, pace and faults; its report is a folder of its own,
// so a table that was interrupted goes on where it stood. Cells are chosen by words of their names. Table reads the
// reports that there are, and shows how long it took until the pool was fresh, and what crossed the link. It starts no
// goroutines.
package grid
