// Package repository holds the files of this repository that are no code to what they promise: workflows call targets that exist, figures of documents stand
// in committed reports, baselines and the history can be read. It has tests only, starts no goroutine, and writes nothing.
package repository
