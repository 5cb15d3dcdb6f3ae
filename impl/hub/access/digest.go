package access

import (
	"crypto/sha256"
	"hash"
	"io"
	"net/http"
)

// digest stands for a token. Tokens are not kept.
type digest [sha256.Size]byte

func digestOf(h http.Header) (d digest) {
	s := sha256.New()
	for _, name := range []string{"Authorization", "Sec-Websocket-Protocol"} {
		put(s, h.Get(name))
	}
	s.Sum(d[:0])
	return d
}

// put writes a string so that no two sequences of strings are the same bytes.
func put(h hash.Hash, s string) {
	n := len(s)
	_, _ = h.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	_, _ = io.WriteString(h, s)
}
