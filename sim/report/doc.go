// Package report turns the result of a scenario run into files that a person can read, and that a program can.
//
// The input is a Result: plain data, collected by the runner. Write puts into one folder
//
//	summary.md   for a pull request: the verdict first, one table of stock, Weir and the reference
//	report.html  one self-contained page with plots: no script, nothing loaded from anywhere
//	bytes.svg    the plot of bytes over time by itself, for summary.md and the README
//	result.json  the Result; its first fields are those that `weir scenario run --output json` prints
//
// WriteIndex writes the page above several scenarios, Compare lays two runs of one scenario side by side,
// Load reads a result.json back. Metrics documents the metrics that scenarios report.
//
// Units: traffic and memory are counted in decimal units, as links are: 1 kB = 1000 bytes, 1 MB = 1000 kB.
// A result that lacks something (no series, no clients, a number that is none) gives a report that says so.
// Every string from outside is escaped, in each of the formats. Files are replaced as a whole or not at all.
//
// The package measures nothing, judges nothing but whether all expectations held, and starts no goroutine.
package report
