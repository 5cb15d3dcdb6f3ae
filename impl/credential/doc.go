// Package credential is how a node proves to the cloud who it is where the cloud has given its kubelet no client
// certificate: by a token, by the file of a token that somebody renews, or by a program that prints one, as the
// kubelet's kubeconfig says (user.token, user.tokenFile, user.exec). Clouds that know nodes by an identity of their own
// work so.
//
// client-go runs such programs too, but waits for one that hangs, and lets all requests wait with it. Here a program
// has a time, its answer has a size, and it runs at most once at a time; after a failure it rests, longer each time,
// and requests meanwhile fail at once with what went wrong. No error holds a token.
//
// A Source starts no goroutine that outlives a call but the one that waits for a program; that ends with the program,
// which has Timeout.
package credential
