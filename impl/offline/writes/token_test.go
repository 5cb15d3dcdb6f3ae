package writes

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/store"
)

// TestTokens: what was issued while the cloud was there is given again, for the same pod and audiences, as long as hubs
// take it; also after a restart. It is not on the disk in plain.
func TestTokens(t *testing.T) {
	for _, media := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(media, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			dir := t.TempDir()
			key, err := disk.NewKey([]byte(strings.Repeat("k", disk.Size)))
			check(t, err)
			openStore := func() *store.Store {
				s, err := store.Open(store.Config{Dir: dir, Clock: clock, Logger: quiet, Key: key})
				check(t, err)
				return s
			}
			s := openStore()
			with := func(c *Config) { c.Store, c.Allowance = s, 24*time.Hour }
			b := newBed(t, clock, with)
			c := b.client(media)
			ask := func(account, pod string, audiences ...string) (*authenticationv1.TokenRequest, error) {
				seconds := int64(3607)
				return c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account,
					&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
						Audiences: audiences, ExpirationSeconds: &seconds,
						BoundObjectRef: &authenticationv1.BoundObjectReference{
							Kind: "Pod", APIVersion: "v1", Name: "web", UID: testPod(pod).UID,
						},
					}}, metav1.CreateOptions{})
			}
			first, err := ask("sa", "web", "a", "b")
			check(t, err)
			second, err := ask("sa", "web", "b", "a")
			check(t, err)
			if first.Status.Token == second.Status.Token {
				t.Fatal("the cloud issues one token twice")
			}
			b.set(member.CloudAway)
			again := func(what, account, pod string, audiences ...string) {
				t.Helper()
				tr, err := ask(account, pod, audiences...)
				if err != nil || tr.Status.Token != second.Status.Token ||
					!tr.Status.ExpirationTimestamp.Equal(&second.Status.ExpirationTimestamp) || tr.Name != account {
					t.Errorf("%s: %+v, %v", what, tr, err)
				}
			}
			refused := func(what, why, account, pod string, audiences ...string) {
				t.Helper()
				if tr, err := ask(account, pod, audiences...); err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("%s: %+v, %v", what, tr, err)
				}
			}
			// client-go tries a refused request ten times, a second each: refusals are asked for without it.
			b.hub.Config.Handler = noRetry(b.hub.Config.Handler)
			again("the last one", "sa", "web", "a", "b")
			refused("another audience", "no token was issued", "sa", "web", "a")
			refused("no audience", "no token was issued", "sa", "web")
			refused("another account", "no token was issued", "sb", "web", "a", "b")
			refused("another pod", "no token was issued", "sa", "db", "a", "b")

			s.Close()
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			check(t, err)
			for _, f := range files {
				if data, err := os.ReadFile(f); err != nil || bytes.Contains(data, []byte(second.Status.Token[:20])) {
					t.Errorf("%s has the token in plain (%v)", f, err)
				}
			}
			s = openStore()
			defer func() { s.Close() }()
			b = newBed(t, clock, with)
			b.set(member.CloudAway)
			c = b.client(media)
			b.hub.Config.Handler = noRetry(b.hub.Config.Handler)
			again("after a restart", "sa", "web", "a", "b")
			for range 24 { // of its own hour, and of the day for which hubs take it then
				clock.Step(time.Hour)
				again("as long as hubs take it", "sa", "web", "a", "b")
			}
			clock.Step(2 * time.Hour)
			refused("after that", "expired at", "sa", "web", "a", "b")
			b.set(member.CloudHere)
			b.cloud.ends = clock.Now().Add(time.Hour)
			_, err = ask("sa", "new", "a")
			check(t, err)
			if n := len(b.writes.tokens.ends); n != 1 {
				t.Errorf("%d tokens are kept, one has not expired", n)
			}
			if l, ok := s.Read(b.writes.tokens.shape()); !ok || len(l.Keys) != 1 {
				t.Errorf("the store has %+v", l)
			}
		})
	}
}
