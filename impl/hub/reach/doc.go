// Package reach tries the ways of a hub to others of its pool, when package connectivity says so, and knows those that
// fail: a hub tells them in its digest.
//
// Prober.Run blocks until its context ends. Attempts run in goroutines, which end before Run does.
package reach
