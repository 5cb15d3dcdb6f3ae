package uplink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// cert is a certificate, or none.
type cert struct{ *tls.Certificate }

func (c *cert) Get() *tls.Certificate { return c.Certificate }

// token is what a node shows.
type token struct {
	cert
	refused []string
}

func (t *token) Token(context.Context) (string, error) { return "the node's", nil }
func (t *token) Counts() bool                          { return true }
func (t *token) Refused(token string)                  { t.refused = append(t.refused, token) }

// TestToken: a token is shown while there is no certificate that is valid: none yet, one that has ended, or one that
// the cloud has just refused.
func TestToken(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Now())
	node, own, changed := &token{cert: cert{&tls.Certificate{}}}, &cert{}, 0
	u := NewUser(UserConfig{
		Name: "n", Node: "n", OfNode: node, Shows: node, Now: c.Now, Clock: c,
		Own: own, Logger: slog.New(slog.DiscardHandler),
	})
	u.Follow(func() { changed++ })
	shows := func(when string, want *tls.Certificate) {
		t.Helper()
		got, err := u.Token(t.Context())
		if wants := map[bool]string{true: "the node's"}[want == nil]; err != nil || got != wants || !u.Counts() {
			t.Errorf("%s: token %q, %v; want %q", when, got, err, wants)
		}
		if want == nil {
			want = node.Certificate
		}
		if u.Get() != want {
			t.Errorf("%s: another certificate than wanted", when)
		}
	}
	signed := func() *tls.Certificate {
		return &tls.Certificate{Leaf: &x509.Certificate{NotAfter: c.Now().Add(time.Hour)}}
	}
	shows("without a certificate", nil)
	u.Refused("the node's")
	first := signed()
	own.Certificate = first
	shows("with one", first)
	u.Refused("")
	shows("when that is refused", nil)
	c.Step(rest)
	shows("a while later", first)
	u.Refused("")
	second := signed()
	own.Certificate = second
	shows("with another", second)
	c.Step(time.Hour + time.Second)
	shows("after its end", nil)
	if len(node.refused) != 1 || changed != 2 {
		t.Errorf("told of the tokens %q, changed %d times", node.refused, changed)
	}
}

// TestSaidOnce: connections are renewed once when a certificate comes, and once when it ends: of two, the streams that
// were opened between them would stay behind.
func TestSaidOnce(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakeClock(now)
	own, changed, looked := &cert{}, make(chan struct{}, 9), make(chan struct{})
	u := NewUser(UserConfig{
		Name: "weir:hub:pool-a:edge-1", Node: "system:node:edge-1", OfNode: &cert{&tls.Certificate{}}, Now: clk.Now,
		Own: own, Clock: clk, Logger: slog.New(slog.DiscardHandler),
	})
	u.Follow(func() { changed <- struct{}{} })
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- u.Run(ctx, func() { looked <- struct{}{} }) }()
	<-looked
	want := func(what string, n int) {
		t.Helper()
		<-looked
		if got := len(changed); got != n {
			t.Errorf("%s: renewed %d times, want %d", what, got, n)
		}
		for range n {
			<-changed
		}
	}
	own.Certificate = &tls.Certificate{Leaf: &x509.Certificate{NotAfter: now.Add(time.Hour)}}
	u.Poke()
	want("a certificate comes", 1)
	clk.Step(every)
	want("nothing new", 0)
	clk.Step(time.Hour)
	want("it has ended", 1)
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
