// Package check is the command `weir check`. It reports whether Weir works in this cluster and, if it does not, the
// cause and where to read on.
//
// Checks are data: an anchor, a description and what looks. Each gives one line, or one for each pool or node. The
// anchor is the heading in docs/operations.md that tells what to do; a test holds that each is there. The form of -o
// json is stable: fields are added, and neither renamed nor taken away.
//
// On a node that has joined, root is told of what runs there, too: by what the machine itself knows, and without a
// cluster (--here).
//
// It starts no goroutine.
package check
