// Package view reads the objects of a cluster that the commands for operators show, once for each command: Kubernetes'
// own objects and those of weir-manager.
//
// What cannot be read is no error of Read: Failed says why, by kind, and who needs it tells. It starts no goroutine.
package view
