// Package callers keeps the list of pods that call the hub of their node, in the file <data-dir>/callers.json. These
// pods have the hub's address in their environment. An operator who removes the hub has to restart them, and reads the
// list for that.
//
// A pod is on the list when the cloud has taken a token that is bound to it. So nobody gets another's pod onto the
// list. It holds names only, and no more than 512: who was heard last stays. A pod that is gone stays until then, too:
// who reads the list asks which pods there are.
//
// # Goroutines
//
// Open starts none. Run writes the file, and ends with its context. Note never waits for a disk.
package callers
