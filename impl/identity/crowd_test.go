package identity

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/limit"
)

// TestOneIdentityIsOneCaller: whatever one identity has been asked about, in whose name and with however many tokens,
// it takes the place of nobody else.
func TestOneIdentityIsOneCaller(t *testing.T) {
	const n = maxCallers + 10
	mine := read("/api/v1/services")
	many := map[string]func(b *bed, i int){
		"names it may not take on": func(b *bed, i int) {
			b.Learn(carrying("Authorization", "Bearer mallory", "Impersonate-User", fmt.Sprint("u", i)).Header, false, mine, 403)
		},
		"names it may take on": func(b *bed, i int) {
			b.Learn(carrying("Authorization", "Bearer mallory", "Impersonate-User", fmt.Sprint("u", i), "Impersonate-Extra-X",
				"y").Header, false, mine, 200)
		},
		"tokens bound to nothing": func(b *bed, i int) {
			b.Learn(withToken(b.key.sign(b.t, podClaims(day, func(c, k object) {
				delete(k, "pod")
				delete(k, "node")
				c["sub"], k["serviceaccount"], c["jti"] = "system:serviceaccount:default:m", object{"name": "m", "uid": "m"},
					fmt.Sprint(i)
			}))).Header, false, mine, 200)
		},
		"tokens of an identity provider": func(b *bed, i int) {
			b.Learn(
				withToken(
					b.key.sign(b.t, podClaims(day, func(c, _ object) {
						c["iss"], c["sub"], c["jti"] = "https://idp", "mallory", fmt.Sprint(i)
					}))).Header, false, mine, 200)
		},
	}
	for name, ask := range many {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			b.fetch()
			victims := []*http.Request{withToken(b.key.sign(t, podClaims(day, nil))), withToken("static")}
			for _, v := range victims {
				b.Learn(v.Header, false, mine, 200)
			}
			ask(b, 0)
			b.verdicts.mu.Lock()
			before := len(b.verdicts.callers)
			b.verdicts.mu.Unlock()
			b.clock.Step(time.Minute)
			for i := range n {
				ask(b, i)
			}
			if got := len(b.verdicts.callers); got != before {
				t.Errorf("%d callers instead of %d", got, before)
			}
			for _, v := range victims {
				if u, refusal := b.authorizeRequest(v, mine); refusal != nil {
					t.Errorf("%s: %v", u.Name, refusal)
				}
			}
		})
	}
}

// TestWhoIsHereStays: of more callers than there is room for, those go that were not seen for the longest time, not
// those whose decisions are old.
func TestWhoIsHereStays(t *testing.T) {
	b := newBed(t, nil)
	mine := read("/api/v1/services")
	here, gone := withToken("here"), withToken("gone")
	b.Learn(here.Header, false, mine, 200)
	b.Learn(gone.Header, false, mine, 200)
	for i := range maxCallers + 10 {
		b.clock.Step(30 * time.Second) // in all less than stampAge, after which a decision is noted again
		if i%100 == 0 {
			b.Learn(here.Header, false, mine, 200)
		}
		b.Learn(withToken(fmt.Sprint("other-", i)).Header, false, mine, 200)
	}
	if _, refusal := b.authorizeRequest(here, mine); refusal != nil {
		t.Errorf("who is here: %v", refusal)
	}
	if _, refusal := b.authorizeRequest(gone, mine); refusal == nil {
		t.Error("who is gone has still a place")
	}
}

// TestNewestDecision: what the cloud denied later is denied, by whichever verb it was asked, and not by which other
// read the caller could have got it.
func TestNewestDecision(t *testing.T) {
	const (
		x        = "/api/v1/namespaces/a/secrets/x"
		list     = "/api/v1/namespaces/a/secrets"
		watch    = list + "?watch=1"
		listAll  = "/api/v1/secrets"
		watchAll = listAll + "?watch=1"
		byName   = list + "?fieldSelector=metadata.name%3Dx"
	)
	type said struct {
		uri  string
		code int
	}
	tests := []struct {
		name string
		said []said // a day between
		ask  string
		want decision
	}{
		{"to watch, later not to list", []said{{watch, 200}, {list, 403}}, x, denied},
		{"to watch, later not to list, and asked to watch", []said{{watch, 200}, {list, 403}}, watch, denied},
		{"to list, later not to watch", []said{{list, 200}, {watch, 403}}, x, denied},
		{"not to list, later to watch", []said{{list, 403}, {watch, 200}}, x, allowed},
		{"not to list, later to watch, and asked to list", []said{{list, 403}, {watch, 200}}, list, denied},
		{"all, later not a part", []said{{listAll, 200}, {list, 403}}, x, denied},
		{"all, later not a part, by another verb", []said{{watchAll, 200}, {list, 403}}, x, denied},
		{"all, later not one", []said{{listAll, 200}, {byName, 403}}, x, denied},
		{"not a part, later all", []said{{list, 403}, {watchAll, 200}}, x, allowed},
		{"a part, later not all", []said{{list, 200}, {listAll, 403}}, x, allowed},
		{"it, later not a part", []said{{x, 200}, {list, 403}}, x, allowed}, // another verb, and a name may be granted alone
		{"nothing but no", []said{{watch, 403}, {list, 403}}, x, undecided},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, nil)
			who := withToken("static")
			for _, s := range test.said {
				b.learn(who.Header, false, read(s.uri), s.code)
				b.clock.Step(24 * time.Hour)
			}
			if test.said[0].code == 403 {
				b.Learn(who.Header, false, read("/version"), 200) // the token is good
			}
			u, err := b.verifyRequest(who)
			check(t, err)
			if d := b.decide(u, read(test.ask)); d != test.want {
				t.Errorf("%v, want %v", d, test.want)
			}
		})
	}
}

// TestLogIsNotTheCallers: whatever callers write into their requests, a log does not fill.
func TestLogIsNotTheCallers(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	good := b.key.sign(t, podClaims(day, nil))
	forged := func(i int) string {
		return signer{fmt.Sprint("kid-", i), "RS256", otherKey()}.sign(t, podClaims(day, nil))
	}
	for i := range 10_000 {
		raw := good
		switch {
		case i%100 == 0:
			raw = forged(i)
		case i%3 == 0:
			raw = fmt.Sprint("garbage-", i)
		}
		req := withToken(raw)
		req.Header.Set("User-Agent", fmt.Sprint("agent-", i))
		if _, refusal := b.authorizeRequest(req, read(fmt.Sprintf("/api/v1/namespaces/a/secrets/x-%d", i))); refusal == nil {
			t.Fatal("nothing was refused")
		}
	}
	if n := strings.Count(b.log.String(), "\n"); n == 0 || n > 100 {
		t.Errorf("%d lines for 10,000 reads", n)
	}
	told := strings.Count(b.log.String(), "\n")
	b.clock.Step(limit.QuietFor)
	if _, refusal := b.authorizeRequest(withToken(good), read("/api/v1/namespaces/a/secrets/x-1")); refusal == nil {
		t.Fatal("nothing was refused")
	}
	if rest := b.log.String(); strings.Count(rest, "\n") != told+1 ||
		!strings.Contains(rest[strings.LastIndex(rest[:len(rest)-1], "\n")+1:], "untold=") {
		t.Errorf("later: %s", rest[max(len(rest)-300, 0):])
	}
}
