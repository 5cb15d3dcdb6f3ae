// Package callers is the list of the pods of a node that call its hub. The hub keeps it in a file,
// <data-dir>/callers.json. Who takes the hub away reads it: these pods have the hub's address in their environment
// until their containers start anew.
//
// A pod is on the list when the cloud has taken a token that is bound to it. So nobody gets another's pod onto the
// list. It holds names only, and no more than 512: who was heard last stays. A pod that is gone stays until then, too:
// who reads the list asks which pods there are.
//
// # Goroutines
//
// Open starts none. Run writes the file, and ends with its context. Note never waits for a disk.
package callers
