// Package credential authenticates a node to the cloud where the kubelet has no client certificate. It uses the token
// that the kubelet's kubeconfig names: as text (user.token), in a file that is renewed (user.tokenFile), or from a
// program (user.exec), as clouds with identities of their own for nodes do.
//
// client-go runs such programs too, but waits for one that hangs, and lets all requests wait with it. Here a program
// has a time, its answer has a size, and it runs at most once at a time; after a failure it rests, longer each time,
// and requests meanwhile fail at once with what went wrong. No error holds a token.
//
// A Source starts no goroutine that outlives a call but the one that waits for a program; that ends with the program,
// which has Timeout.
package credential
