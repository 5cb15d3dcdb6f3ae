// Package structure measures the code itself: how the files of a package use one another, how large packages and
// structs are, how many flags the binaries have. `make structure` prints it. Its tests hold which packages may stand in
// the import closure of which.
package structure
