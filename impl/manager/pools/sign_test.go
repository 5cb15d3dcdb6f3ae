package pools

import (
	"context"
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pki"
)

// shelf is a cluster of Endpoints and of what hubs gave back.
type shelf struct {
	client.Client
	is   *corev1.Endpoints
	back *corev1.ConfigMap
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *corev1.Endpoints:
		if s.is != nil {
			s.is.DeepCopyInto(o)
			return nil
		}
	case *corev1.ConfigMap:
		if s.back != nil && s.back.Name == key.Name {
			s.back.DeepCopyInto(o)
			return nil
		}
	}
	return apierrors.NewNotFound(corev1.Resource("objects"), key.Name)
}

// TestSign: what a pool is told is signed once, and again under a higher number when it says something else, when
// another authority signs, when somebody has spoilt the signature, and when hubs gave back what this cluster has
// forgotten. What they gave back under a number of the far future is nothing.
func TestSign(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fresh := func(at time.Time) *pki.Authority {
		a, err := pki.NewPoolAuthority("harbour", at)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	clock, cluster, asked := clocktesting.NewFakePassiveClock(now), &shelf{}, 0
	keys := &pki.Succession{Signer: fresh(now)}
	s := &signer{
		client: cluster, reader: cluster, clock: clock, log: slog.New(slog.DiscardHandler), known: map[string]signed{},
		authority: func(context.Context, string) (*pki.Succession, error) { asked++; return keys, nil },
	}
	v := &view{name: "harbour", nodepool: &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}}
	v.scope = scope{shared: []string{"example.com/v1/widgets"}, kinds: []string{"example.com/v1/widgets=Widget"}}
	var last directory.Entry
	var text string
	sign := func(what string, anew bool) {
		t.Helper()
		all, err := leaderHub(v)
		if err != nil {
			t.Fatal(err)
		}
		o := all[1].(*corev1.Endpoints)
		if err := s.sign(t.Context(), v, o); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		cluster.is = o
		e, _, err := directory.Open([]byte(o.Annotations[contract.LeaderHubSigned]), "harbour",
			[]*x509.Certificate{keys.Signer.Cert()})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if is := o.Annotations[contract.LeaderHubSigned] != text; is != anew || anew && e.Version <= last.Version {
			t.Errorf("%s: number %d after %d, signed anew %t", what, e.Version, last.Version, is)
		}
		last, text = e, o.Annotations[contract.LeaderHubSigned]
	}
	sign("at first", true)
	if len(last.Scope) != 1 || last.Scope[0].Kind != "Widget" || last.Version != bulletin.Next(0, now) {
		t.Errorf("%+v", last)
	}
	sign("once more", false)
	s.forget("harbour")
	sign("after another look", false)
	v.plan.coordinators = []string{"https://10.0.0.7:10270"}
	sign("another coordinator", true)
	v.gate = gateOf(t, "https://gate.example:10273")
	sign("a gate", true)
	if last.Gate != v.gate {
		t.Errorf("signed is the gate %+v", last.Gate)
	}
	v.gate = gateOf(t, v.gate.Server)
	sign("other authorities of the gate", true)
	v.gate = directory.Gate{}
	sign("no gate", true)
	clock.SetTime(now.Add(time.Second))
	cluster.is.Annotations[contract.LeaderHubSigned] = "{}"
	sign("a signature that somebody spoilt", true)
	keys = &pki.Succession{Signer: fresh(now.Add(time.Minute)), Before: []*x509.Certificate{keys.Signer.Cert()}}
	s.forget("harbour")
	sign("another authority", true)

	give := func(number uint64) {
		line, err := directory.Entry{Pool: "harbour", Version: number}.Sign(keys.Signer)
		if err != nil {
			t.Fatal(err)
		}
		cluster.back = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: "returned-harbour",
			}, Data: map[string]string{contract.DirectoryKey: string(line)},
		}
		s.forget("harbour")
	}
	back := bulletin.Next(0, now.Add(30*time.Minute))
	give(back)
	sign("what hubs gave back", true)
	if last.Version <= back {
		t.Errorf("number %d, and hubs hold %d", last.Version, back)
	}
	s.forget("harbour")
	sign("and once more", false)
	give(1<<64 - 1)
	sign("the last number of all", false)

	keys = nil
	s.forget("harbour")
	all, err := leaderHub(v)
	if err != nil {
		t.Fatal(err)
	}
	cluster.is, asked = nil, 0
	for _, after := range []time.Duration{0, sure - 1, 1} { // a pool without an authority is not asked for at each change
		clock.SetTime(clock.Now().Add(after))
		if err := s.sign(t.Context(), v, all[1].(*corev1.Endpoints)); err != nil ||
			all[1].GetAnnotations()[contract.LeaderHubSigned] != "" {
			t.Errorf("without an authority: %v, %v", all[1].GetAnnotations(), err)
		}
	}
	if asked != 2 {
		t.Errorf("the authority that there is not was asked for %d times in %v, want 2", asked, sure)
	}
}
