// Package sysdump is the command `weir sysdump`. It collects, in one archive, what a person needs who is asked for
// help.
//
// No Secret is read, and no key. What is read is gone through for what looks like one all the same: tokens, keys in
// PEM, passwords in URLs, values of environment variables. Each file and the archive are bounded. What could not be
// read stands in errors.txt.
//
// It starts no goroutine.
package sysdump
