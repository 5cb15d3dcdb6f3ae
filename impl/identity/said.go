package identity

import (
	"time"

	"k8s.io/utils/lru"
)

// maxSaid bounds the tokens of which is remembered what they say: some 300 bytes each.
const maxSaid = 1024

// saying is what a token says of itself, as far as each request with it needs that. Nothing of it is verified.
type saying struct {
	at  place
	end time.Time // zero: it says none
}

// sayings remembers what tokens say: to take one apart costs a request more memory than anything else of it, and a
// caller shows the same one for an hour.
type sayings struct{ tokens *lru.Cache } // by digest

func newSayings() *sayings { return &sayings{lru.New(maxSaid)} }

func (s *sayings) of(raw string) saying {
	d := hashOf("token", raw)
	if known, ok := s.tokens.Get(d); ok {
		return known.(saying)
	}
	t := readToken(raw)
	is := saying{at: tokenUser(t).at}
	if t.signed != nil && t.claims.Expiry != nil {
		is.end = t.claims.Expiry.Time()
	}
	s.tokens.Add(d, is)
	return is
}
