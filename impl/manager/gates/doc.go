// Package gates knows where weir-gate is, as weir-manager tells pools: its address, and the authorities of its
// certificate, which stand in a file that may change. It never calls the gate.
//
// New starts nothing. Gate.Follow blocks until its context ends.
package gates
