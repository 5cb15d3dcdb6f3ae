// Package repository tests the files of this repository that are not code: documents, workflows, scripts and reports.
//
// Links lead somewhere, figures stand in committed reports, functions that a document names exist, the map of packages
// is complete, workflows call targets that exist, baselines and the history can be read. It has tests only, starts no
// goroutine, and writes nothing.
package repository
