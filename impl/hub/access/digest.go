package access

import (
	"crypto/sha256"
	"net/http"
)

// digest stands for a token. Tokens are not kept.
type digest [sha256.Size]byte

// room is for what a digest is made of. Each request needs some: they take memory only where there is more of it.
type room [2 << 10]byte

func digestOf(h http.Header) digest {
	var r room
	return sha256.Sum256(put(put(r[:0], h.Get("Authorization")), h.Get("Sec-Websocket-Protocol")))
}

// put appends a string so that no two sequences of strings are the same bytes.
func put(b []byte, s string) []byte {
	n := len(s)
	return append(append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), s...)
}
