// Package view is what the commands of operators see of a cluster: Kubernetes' own objects and those that weir-manager
// keeps, read once.
//
// What cannot be read is no error of Read: Failed says why, by kind, and who needs it tells. It starts no goroutine.
package view
