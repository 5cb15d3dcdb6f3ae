// Package structure measures the code itself: how the files of a package use one another, the size of packages and
// structs, and the number of flags of the programs. `make structure` prints it. Its tests hold which packages may be in
// the import closure of another, and that no package of sim has the name of one of impl.
package structure
