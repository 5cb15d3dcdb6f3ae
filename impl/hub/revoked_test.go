package hub

import (
	"bufio"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// TestRefusedTokenHere: a token that the cloud refuses costs it one request in ten seconds, opens nothing more and
// keeps nothing open, while others go on.
func TestRefusedTokenHere(t *testing.T) {
	b, link := offlineBed(t)
	cloud := b.clouds[0]
	cloud.put("default", "web")
	b.start()
	b.here()
	b.fed()
	client := b.client(nil)
	bob := []string{"Authorization", "Bearer bob"}
	watch := func(who []string) <-chan error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url()+slicesPath+"?watch=1&resourceVersion=100",
			nil)
		check(t, err)
		req.Header.Set(who[0], who[1])
		resp, err := client.Do(req)
		check(t, err)
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		ended := make(chan error, 1)
		go func() {
			defer resp.Body.Close()
			in := bufio.NewScanner(resp.Body)
			for in.Scan() {
			}
			ended <- in.Err()
		}()
		return ended
	}
	his, hers := watch(bob), watch(alice)
	if resp, _ := get(t, client, b.url()+slicesPath, bob...); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	cloud.refuse("bob", "mallory")
	seen := func(who string) (n int) {
		cloud.set(func() {
			for _, s := range cloud.seen {
				if s.user == who {
					n++
				}
			}
		})
		return n
	}
	before := seen("bob")
	for range 20 {
		for _, who := range []string{"bob", "mallory"} {
			if resp, _ := do(t, client, http.MethodPost, b.url()+"/echo/x", nil, "Authorization",
				"Bearer "+who); resp.StatusCode != http.StatusUnauthorized {
				t.Fatalf("%s writes: %s", who, resp.Status)
			}
			for _, path := range []string{"/echo/x", slicesPath, slicesPath + "?watch=1", "/api/v1/endpoints"} {
				if resp, _ := get(t, client, b.url()+path, "Authorization", "Bearer "+who); resp.StatusCode !=
					http.StatusUnauthorized {
					t.Fatalf("%s gets %s: %s", who, path, resp.Status)
				}
			}
		}
	}
	if n := seen("bob") - before; n != 1 {
		t.Errorf("a token that was good asked the cloud %d times", n)
	}
	if n := seen("mallory"); n != 1 {
		t.Errorf("a token that never was asked the cloud %d times", n)
	}
	check(t, <-his)
	if resp, _ := get(t, client, b.url()+slicesPath, alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("another token: %s", resp.Status)
	}
	select {
	case err := <-hers:
		t.Errorf("the watch of another token ended: %v", err)
	default:
	}
	b.sure()
	link.set(true)
	b.away()
	if resp, _ := get(t, client, b.url()+slicesPath, bob...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the cloud: %s", resp.Status)
	}
	if resp, _ := get(t, client, b.url()+slicesPath, alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("another token, without the cloud: %s", resp.Status)
	}
}

// sure waits until the hub has asked the cloud again about all that it denied.
func (b *bed) sure() {
	b.t.Helper()
	eventually(b.t, "no denial to be in doubt", func() bool { return b.hub.judge.Doubts() == 0 })
}

// TestOneRefusalHere: a cloud that starts refuses good callers once, and is then cut off. While it is there they hear
// that; without it, what it had allowed them counts as before, also for a hub that was started again.
func TestOneRefusalHere(t *testing.T) {
	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			b, link := offlineBed(t)
			cloud := b.clouds[0]
			cloud.put("default", "web")
			stop := b.start()
			b.here()
			b.fed()
			cert := b.ca.tls("system:node:edge-1", "system:nodes")
			bob, carol := []string{"Authorization", "Bearer bob"}, []string{"Authorization", "Bearer carol"}
			reads := []struct {
				client *http.Client
				who    []string
				path   string
			}{
				{b.client(&cert), nil, "/api/v1/endpoints"}, {b.client(nil), alice, "/api/v1/endpoints"},
				{b.client(nil), bob, slicesPath}, {b.client(nil), carol, slicesPath + "?watch=1&timeoutSeconds=1"},
			}
			expect := func(when string, want int) {
				t.Helper()
				for i, r := range reads {
					if resp, body := get(t, r.client, b.url()+r.path, r.who...); resp.StatusCode != want {
						t.Errorf("%s: %d. %s: %s %.300s, want %d", when, i, r.path, resp.Status, body, want)
					}
				}
			}
			expect("before", http.StatusOK)
			b.kept(2)
			stop()
			stop = b.start() // of what was asked for relays nothing is fresh
			b.here()
			b.fed()
			cloud.answers(code, "system:node:edge-1", "alice", "bob", "carol")
			expect("while it starts", code)
			link.set(true)
			b.away()
			expect("without the cloud", http.StatusOK)
			stop()
			b.start()
			b.away()
			expect("after a restart", http.StatusOK)
		})
	}
}

// TestFailedReviewIsNoOutage: a caller whose reviews fail while the cloud is there reads nothing by what was allowed
// before, from no relay.
func TestFailedReviewIsNoOutage(t *testing.T) {
	b, _ := offlineBed(t)
	b.start()
	b.here()
	b.fed()
	client := b.client(nil)
	if resp, _ := get(t, client, b.url()+slicesPath, alice...); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	long := url.QueryEscape(strings.TrimSuffix(strings.Repeat("!a,", 6000), ","))
	for _, code := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusUnauthorized} {
		b.clouds[0].answers(code, "alice")
		want := http.StatusServiceUnavailable
		if code == http.StatusUnauthorized {
			want = code
		}
		for query, want := range map[string]int{
			"?labelSelector=x!%3D1": want, "?watch=1&labelSelector=x!%3D1": want, "?labelSelector=" + long: code,
		} {
			if resp, body := get(t, client, b.url()+slicesPath+query, alice...); resp.StatusCode != want {
				t.Errorf("the cloud says %d to everything: %.40s: %s, want %d: %.900s", code, query, resp.Status, want, body)
			}
		}
	}
}
