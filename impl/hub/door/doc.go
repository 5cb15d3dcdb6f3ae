// Package door is the entrance of a hub. It opens the ports and serves on them. It checks and parses each request once,
// identifies its caller, and passes it to a relay, to the store, to the cloud, or answers it itself.
//
// A watch that is passed to the cloud ends in order, whatever becomes of the link (answer.Frames), and its client goes
// on at the version it has seen. It ends so as well when a relay can go on where it stands: the relay had nothing to
// answer with when the watch began, or had not the resource.
//
// A Door goes by the same parsed request until the answer: who judges it, answers it or keeps it does so, too. A Proxy
// sends to the cloud what is not answered on this node. Neither starts a goroutine; Close makes a Door refuse what
// comes from then on. Serve ends what it started before it returns.
//
// HTTP/2 frames of large answers are encrypted and sent in batches of 64 KiB while the next are made (batchHTTP2). What
// goes alone, a small answer or one watch event, is written as it comes. A connection has buffers only while a batch is
// under way.
//
// # What is read of the whole cluster
//
// Demand counts which resources clients of this node read of the whole cluster, so that a person can decide what the
// pool is to share. Such a read is a list or watch without a namespace, whose selectors do not ask for one object, one
// value or this node. Passed counts the bytes of the cloud's answers to such reads, as they came over the link. Relayed
// notes that a client read what the pool shares. Reads tells both, in the form in which a hub tells it to the cloud
// (package digest).
//
// Bytes are those of the last 24 hours. What nobody stays with is told under no name: a person who lists all Pods once
// is no reason to share them. Whatever clients ask for, 32 resources have a name here. A resource that comes then takes
// the place of the one with the least bytes. What nobody should share (digest.Private) has no name at all.
package door
