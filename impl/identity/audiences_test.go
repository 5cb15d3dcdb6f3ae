package identity

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/store"
)

// TestAudiences: what the cloud's API is called is learnt from tokens that the cloud has taken: of several names, which
// one it took them for is not known, so a token has to have all of them. It is known after a restart.
func TestAudiences(t *testing.T) {
	const api = "kubernetes.svc.default"
	tests := []struct {
		name  string
		taken [][]string
		good  [][]string
		bad   [][]string
	}{
		{"nothing was heard: the issuer", nil, [][]string{{issuer}, {issuer, "vault"}}, [][]string{{api}, {"vault"}, {}}},
		{
			"another than the issuer", [][]string{{api}}, [][]string{{api}, {"vault", api}}, [][]string{{issuer}, {"vault"}, {}},
		},
		{
			"two, of which a token has both", [][]string{{api, issuer}}, [][]string{{issuer, api}, {api, "x", issuer}},
			[][]string{{api}, {issuer}, {"x"}},
		},
		{"one that is for others, too", [][]string{{"vault", api}}, [][]string{{api, "vault"}}, [][]string{{"vault"}, {api}}},
		{
			"and then one that is not", [][]string{{"vault", api}, {api}}, [][]string{{api}, {api, "vault"}},
			[][]string{{"vault"}},
		},
		{"as many as nobody has", [][]string{strings.Split("abcdefghi", "")}, [][]string{{issuer}}, [][]string{{"a"}}},
		{"one that is too long", [][]string{{strings.Repeat("a", maxAudience+1)}}, [][]string{{issuer}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, nil)
			b.fetch()
			n := 0
			with := func(audiences []string) *http.Request {
				n++
				return withToken(b.key.sign(t, podClaims(day, func(c, _ object) { c["aud"], c["jti"] = audiences, fmt.Sprint(n) })))
			}
			for _, audiences := range test.taken {
				b.Learn(with(audiences).Header, false, read("/version"), http.StatusForbidden) // it knows who that is
			}
			refused := with([]string{"refused"})
			b.Learn(refused.Header, false, read("/version"), http.StatusUnauthorized)
			for _, restarted := range []bool{false, true} {
				if restarted {
					b.start(nil)
				}
				for _, audiences := range test.good {
					if _, err := b.verifyRequest(with(audiences)); err != nil {
						t.Errorf("%q, restarted %v: %v", audiences, restarted, err)
					}
				}
				for _, audiences := range append(test.bad, []string{"refused"}) {
					if u, err := b.verifyRequest(with(audiences)); err == nil || !strings.Contains(err.Error(), "not for the API") {
						t.Errorf("%q, restarted %v: %q, %v", audiences, restarted, u.Name, err)
					}
				}
			}
		})
	}
}

// TestAudiencesOfOthers: what is learnt of one issuer's tokens counts for no other's, what was not heard for long is no
// longer valid, and what is kept is bounded.
func TestAudiencesOfOthers(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Allowance = 10 * DefaultTTL })
	b.fetch()
	token := func(issuer string, audiences ...string) *http.Request {
		return withToken(b.key.sign(t, podClaims(day, func(c, _ object) { c["iss"], c["aud"] = issuer, audiences })))
	}
	takes := func(issuer string, audiences ...string) {
		b.Learn(token(issuer, audiences...).Header, false, read("/version"), http.StatusOK)
	}
	takes("https://idp", "a")
	if _, err := b.verifyRequest(token(issuer, "a")); err == nil {
		t.Error("a name that another issuer's tokens have is believed")
	}
	takes(issuer, "b")
	b.clock.Step(DefaultTTL - time.Minute)
	takes(issuer, "b")
	b.clock.Step(2 * time.Minute)
	if _, err := b.verifyRequest(token(issuer, "b", "x")); err != nil {
		t.Error(err)
	}
	b.clock.Step(DefaultTTL)
	if _, err := b.verifyRequest(token(issuer, "b", "x")); err == nil {
		t.Error("a name that was not heard for long counts")
	}
	for i := range maxAudienceSets + 10 {
		takes(issuer, fmt.Sprint("c-", i))
	}
	if n := len(b.audiences.all); n != maxAudienceSets {
		t.Errorf("%d are kept", n)
	}
	for _, body := range []string{
		"{", "null", `[{"issuer":"i","names":[]}]`,
		`[` + strings.Repeat(`{"issuer":"i","names":["a"]},`, 100) + `{}]`,
	} {
		check(t, b.docs.PutDocument(audiencesDocument, store.Document{Body: []byte(body)}))
		b.start(nil)
		if n := len(b.audiences.all); n > maxAudienceSets {
			t.Errorf("%.40s: %d", body, n)
		}
	}
}
