// Package svg draws the plots of a report: shapes and text on a Canvas, and the Scale and ticks of an axis.
//
// It owns the form of SVG: everything that goes into a document is escaped, every number is finite, every
// document has a title and a description for those who do not see it. It never decides what a plot looks
// like; colours and fonts come from a style sheet by class. It starts no goroutine and touches no file.
package svg
