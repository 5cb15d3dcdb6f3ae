// Package pool is the command `weir pool`. It makes the objects of a pool, and shows pools.
//
// It starts no goroutine.
package pool
