// Package certificates is weir pki: what certificates there are, and to make, to look at and to replace them. Package
// pki has the table that all of it goes by.
//
// It starts no goroutine.
package certificates
