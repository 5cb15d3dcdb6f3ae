package writes

import (
	"os"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/store"
)

// TestTokensAfterKill: a hub that is killed has all tokens that were written, those of the process before among them.
// That one ended a minute before.
func TestTokensAfterKill(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	dir := t.TempDir()
	open := func() (*bed, *store.Store) {
		s, err := store.Open(store.Config{Dir: dir, Clock: clock, Logger: quiet})
		check(t, err)
		b := newBed(t, clock, func(c *Config) { c.Store, c.Allowance = s, 24*time.Hour })
		b.hub.Config.Handler = noRetry(b.hub.Config.Handler)
		return b, s
	}
	ask := func(b *bed, account string) error {
		_, err := b.client(runtime.ContentTypeProtobuf).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "web"},
			}}, metav1.CreateOptions{})
		return err
	}
	b, s := open()
	check(t, ask(b, "before"))
	s.Close()
	clock.Step(time.Minute)
	b, s = open()
	check(t, ask(b, "new"))
	s.Flush()
	crashed := t.TempDir()
	check(t, os.CopyFS(crashed, os.DirFS(dir)))
	s.Close()
	dir = crashed
	b, s = open()
	defer s.Close()
	b.set(member.CloudAway)
	for _, account := range []string{"before", "new"} {
		if err := ask(b, account); err != nil {
			t.Errorf("%s: %v", account, err)
		}
	}
}
