// Package certificates is the command `weir pki`. It lists, makes, checks and replaces the certificates of Weir.
// Package pki has the table of all certificates.
//
// It starts no goroutine.
package certificates
