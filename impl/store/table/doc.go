// Package table keeps the rows of package store in a file of bbolt. After a power cut, a flipped bit, or a disk that
// lied about a sync, it reports which rows can be trusted. It does not know what the rows mean.
//
// Each row begins with a CRC-32C of its table, key and value, since bbolt checks none of its data.
//
// # What is believed
//
// A sum over a row does not tell today's row from last week's, which stands in a page that the disk never wrote: such a
// page is whole, and so is a list in it. So the rows are divided into 128 groups, and the row digest has the sum of
// each group's sums and the number of the transaction, which is also in the page that makes it count. Whatever is
// missing, older or too much is then in a group of which the sum is another. The digest stands in the page of the
// tables themselves, which each transaction writes in any case: it costs no page.
//
// bbolt believes the headers of its pages. It frees as many pages as a page says that belong to it, and copies as many
// bytes as a row says that it has: one flipped bit takes all memory of the machine. So before bbolt opens the file, all
// of its pages in use are looked at: that each has one place, is what its place asks for, and ends inside the file,
// that rows stand side by side inside their page with their keys in order, and that the free pages are in no other use
// (survey). Each page is read once at most, so that takes no more time and memory than the file is large, whatever
// stands there; of a row of more than a page only the first is read. Then, in this order:
//
//   - the last transaction is whole: it counts;
//   - the one before is whole, of which all pages are still there: the disk lost a part of the last one, and the one
//     before is used;
//   - else a new file is written with the rows of those groups that add up;
//   - else, if not even the page of the tables can be believed, the file is removed.
//
// A sum over each page, as other engines have, would find damaged pages but not old ones, unless the page above has it
// too, which is a change of bbolt's format. Another engine would have to be as small in memory, and be asked the same
// questions. What is found at opening is what a power cut or a bit that flips on the flash leaves. What flips in the
// page cache of a running process is not looked for.
//
// # Goroutines
//
// It starts none. One goroutine at a time may Commit or Close; any number may View meanwhile.
package table
