// Package connectivity is the command `weir connectivity`. It shows, for each kind of way that nodes of a pool use,
// whether it works, as their hubs found it, and each way that fails with its port, direction and likely cause.
//
// Nothing is tried from where the command runs: what works there need not work at a site. Ways of a node that cannot
// tell are unknown, which is not green. The form of -o json is stable: fields are added, and neither renamed nor taken
// away.
//
// It starts no goroutine.
package connectivity
