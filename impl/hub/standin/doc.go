// Package standin is what a hub goes on with when it cannot use what it was given: without a hub its node has no API,
// though the cloud is there.
//
// In the place of a folder that cannot be written stands one in memory, with what small files the folder holds. Nothing
// of the folder itself is changed. A List names what is lacking; the hub's status, its metrics and its log show it.
// When the cause of a lack is gone the hub ends, and whoever started it starts it anew: parts that run would otherwise
// have to change what is below them.
//
// The package starts no goroutine. List.Run ends with its context.
package standin
