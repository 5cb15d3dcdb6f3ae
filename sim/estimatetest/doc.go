// Package estimatetest has tests of weir estimate at a real kube-apiserver: its rates and bytes beside what watches
// get there, and what it does with read-only rights.
package estimatetest
