// Package oracle compares a relay with a real kube-apiserver: it sends the same request to both, and compares the
// answers.
//
// Requests are generated from a seed: gets, lists (every form of resourceVersion, resourceVersionMatch, limit and
// continue, selectors, namespaces), watches (from a version, from 0, unset, streaming lists, bookmarks, selectors), in
// protobuf, JSON, metadata only and as tables, and requests that must be refused. They run while objects change.
// Answers are compared at equal resourceVersion, never at equal time: lists byte by byte, watch histories frame by
// frame, to their end. Objects of the same version with other bytes are wrong at once, and nothing is asked again.
//
// kube-apiserver drops a bookmark that finds the watcher's buffer full, so what it did not vouch for is asked for in
// further watches. A relay owes its bookmarks: one that stops, or shows less in a watch than in a list, is found out.
// TestPlantedBugs puts such bugs between relay and oracle.
//
// What a relay answers differently by design is not asked for here: an unset resourceVersion is the relay's version
// (rule 3 of a relay), so such an answer is compared with the exact list of kube-apiserver at the version that the
// relay named.
//
// The package starts one goroutine per open watch and waits for it.
package oracle
