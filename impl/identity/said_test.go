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

// TestKnown: a token is verified once, and again when the keys are others; nobody is taken for the one that is known.
func TestKnown(t *testing.T) {
	b := newBed(t, nil)
	raw := b.key.sign(t, podClaims(day, nil))
	if x := b.known(raw); x.ours || x.err != nil {
		t.Errorf("without keys: %v, %v", x.ours, x.err)
	}
	b.fetch()
	first := b.known(raw)
	if !first.ours || first.account.Name != "system:serviceaccount:default:web" || b.known(raw) != first {
		t.Errorf("with its key: %+v", first)
	}
	if x := b.known(raw[:len(raw)-8] + "AAAAAAAA"); x.ours || x.err == nil {
		t.Errorf("with another signature: %v, %v", x.ours, x.err)
	}
	b.cloud.set(signer{"two", b.key.alg, otherKey()})
	b.fetch()
	if x := b.known(raw); x.ours || x.err == nil {
		t.Errorf("without its key: %v, %v", x.ours, x.err)
	}
	for n := range 2 * maxJudged {
		b.known(strconv.Itoa(n))
	}
	if n := b.judged.Len(); n > maxJudged {
		t.Errorf("%d tokens are remembered", n)
	}
}
