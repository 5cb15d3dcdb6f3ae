package identity

import (
	"strconv"
	"strings"
	"testing"
)

// TestSayings: what is remembered of a token is what it says, and each request after the first one takes no memory
// for it.
func TestSayings(t *testing.T) {
	s := newSayings()
	good := newBed(t, nil).key.sign(t, podClaims(day, nil))
	for _, raw := range []string{good, "opaque", "", good[:len(good)-2], strings.Repeat("x", maxToken+1)} {
		was := readToken(raw)
		for range 2 {
			got := s.of(raw)
			ends := was.signed != nil && was.claims.Expiry != nil
			if got.at != tokenUser(was).at || got.end.IsZero() == ends || ends && !got.end.Equal(was.claims.Expiry.Time()) {
				t.Errorf("%.20q: %+v", raw, got)
			}
		}
	}
	if s.of(good).end.IsZero() {
		t.Error("the token has no end")
	}
	if n := testing.AllocsPerRun(100, func() { s.of(good) }); n > 1 { // the key of the cache
		t.Errorf("a token that is known takes memory %v times", n)
	}
	for n := range 2 * maxSaid {
		s.of(strconv.Itoa(n))
	}
	if n := s.tokens.Len(); n > maxSaid {
		t.Errorf("%d tokens are remembered", n)
	}
}
