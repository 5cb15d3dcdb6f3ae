// Package pool is weir pool: it makes the objects of a pool, and shows pools.
//
// It starts no goroutine.
package pool
