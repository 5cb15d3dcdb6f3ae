// Package standin lets a hub run on when its files are damaged or missing. Without a hub its node has no API, even
// while the cloud is there.
//
// In the place of a folder that cannot be written stands one in memory, with what small files the folder holds. Nothing
// of the folder itself is changed. A List names what is lacking; the hub's status, its metrics and its log show it.
// When the cause of a lack is gone the hub ends, and anyone who started it restarts it: parts that run would otherwise
// have to change what is below them.
//
// The package starts no goroutine. List.Run ends with its context.
package standin
