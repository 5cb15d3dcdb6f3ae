package operator

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// hub is one that has told of itself and of reads, so long ago each; read negative: of reads it told nothing.
func hub(node string, told, read time.Duration, rest int64, unread []string, passed ...poolv1.PassedReads) poolv1.Hub {
	h := poolv1.Hub{Node: node, Told: metav1.NewTime(now.Add(-told))}
	if read >= 0 {
		h.Reads = &poolv1.Reads{
			Told: metav1.NewTime(now.Add(-read)), Passed: passed, PassedRestBytes: rest, Unread: unread,
		}
	}
	return h
}

func pool(hubs ...poolv1.Hub) *poolv1.Pool {
	p := &poolv1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "harbour"}}
	p.Status.Hubs = hubs
	return p
}

func shares(names ...string) *nodepool.NodePool {
	n := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour"}}
	for _, name := range names {
		r, err := resourceOf(name)
		if err != nil {
			panic(err)
		}
		n.Spec.PoolScopeMetadata = append(n.Spec.PoolScopeMetadata, r)
	}
	return n
}

const (
	slicesName = "endpointslices.v1.discovery.k8s.io"
	widgets    = "widgets.v1.example.com"
)

// busy is a pool with Cilium and Calico, a metrics server, a liar, and a hub that has told nothing for a day.
func busy() (*poolv1.Pool, *nodepool.NodePool, map[string]bool) {
	one := func(of int64) []poolv1.PassedReads {
		return []poolv1.PassedReads{
			{Resource: "ciliumidentities.v2.cilium.io", Bytes: 3_100_000 * of},
			{Resource: "felixconfigurations.v1.crd.projectcalico.org", Bytes: 40_000},
			{Resource: "pods.v1beta1.metrics.k8s.io", Bytes: 900_000}, {Resource: "widgets.v1beta1.example.com", Bytes: 8_000},
			{Resource: "services.v1.", Bytes: 5_000_000},
		}
	}
	unread := []string{slicesName, widgets}
	return pool(
		hub("edge-1", time.Minute, time.Hour, 70_000, []string{widgets}, one(1)...),
		hub("edge-2", 2*time.Minute, 5*time.Hour, 0, unread, one(2)...),
		hub("edge-3", time.Minute, time.Hour, 0, unread, poolv1.PassedReads{Resource: "secrets.v1.", Bytes: 1 << 40},
			poolv1.PassedReads{Resource: "nonsense; rm", Bytes: 9}, poolv1.PassedReads{Resource: "nodes.v1.", Bytes: 700},
			poolv1.PassedReads{Resource: "configmaps.v1.", Bytes: 1 << 40}),
		hub("edge-4", 25*time.Hour, 25*time.Hour, 5, nil, one(1000)...),
	), shares("services.v1.", slicesName, widgets), map[string]bool{"v1beta1.metrics.k8s.io": true}
}

// TestSuggestion: what a person and a program see of a pool, and the line of weir status.
func TestSuggestion(t *testing.T) {
	p, n, aggregated := busy()
	calm := pool(hub("edge-1", time.Minute, time.Minute, 0, nil))
	for name, s := range map[string]suggestion{
		"busy": suggest(p, n, aggregated, now), "default": suggest(p, nil, aggregated, now),
		"calm": suggest(calm, n, nil, now), "untold": suggest(pool(hub("edge-1", time.Minute, -1, 0, nil)), n, nil, now),
	} {
		for _, form := range suggestForms {
			var got bytes.Buffer
			if err := s.Write(&got, form); err != nil {
				t.Fatal(err)
			}
			if b := s.Brief(); b != nil && form == "table" {
				fmt.Fprintf(&got, "\n%s\n", b.Line("harbour"))
			}
			golden(t, name+"."+form, got.Bytes())
		}
	}
}

// TestUnread: a shared resource is unread only when each hub that runs has told so lately.
func TestUnread(t *testing.T) {
	n, unread := shares(slicesName, widgets), []string{widgets}
	for name, c := range map[string]struct {
		hubs  []poolv1.Hub
		known bool
		want  int
	}{
		"all say so":       {[]poolv1.Hub{hub("a", 0, 0, 0, unread), hub("b", 0, 0, 0, unread)}, true, 1},
		"one reads it":     {[]poolv1.Hub{hub("a", 0, 0, 0, unread), hub("b", 0, 0, 0, nil)}, true, 0},
		"one has not told": {[]poolv1.Hub{hub("a", 0, 0, 0, unread), hub("b", 0, -1, 0, nil)}, false, 0},
		"one told long ago": {
			[]poolv1.Hub{hub("a", 0, 0, 0, unread), hub("b", 0, digest.ReadsLapsed+1, 0, unread)}, false, 0,
		},
		"one is gone":          {[]poolv1.Hub{hub("a", 0, 0, 0, unread), hub("b", digest.Lapsed+1, 0, 0, nil)}, true, 1},
		"of what is not there": {[]poolv1.Hub{hub("a", 0, 0, 0, []string{"gadgets.v1.example.com"})}, true, 0},
		"none has told":        {nil, false, 0},
		"there may be more":    {make([]poolv1.Hub, poolv1.MaxHubs), false, 0},
	} {
		s := suggest(pool(c.hubs...), n, nil, now)
		if s.UnreadKnown != c.known || len(s.Unread) != c.want {
			t.Errorf("%s: known %t, %v", name, s.UnreadKnown, s.Unread)
		}
	}
}

// TestNeverShared: whatever hubs tell, nothing is suggested that a pool refuses or that may be secret, and no more than
// a pool can share.
func TestNeverShared(t *testing.T) {
	var all []poolv1.PassedReads
	for _, name := range []string{
		"secrets.v1.", "configmaps.v1.", "leases.v1.coordination.k8s.io", "tokens.v1.example.com",
		"tokenreviews.v1.authentication.k8s.io",
	} {
		all = append(all, poolv1.PassedReads{Resource: name, Bytes: 1000})
	}
	s := suggest(pool(hub("a", 0, 0, 0, nil, all...), hub("b", 0, 0, 0, nil, all...)), nil, nil, now)
	if len(s.Passed) != 0 || s.Others != 10_000 || s.Brief() != nil {
		t.Errorf("%+v", s)
	}

	full, hubs := &nodepool.NodePool{}, []poolv1.Hub{}
	for i := range directory.MaxScope - 1 {
		full.Spec.PoolScopeMetadata = append(full.Spec.PoolScopeMetadata, nodepool.Resource{
			Version: "v1", Resource: fmt.Sprintf("r%d", i),
		})
	}
	for i := range 500 {
		passed := []poolv1.PassedReads{}
		for j := range digest.MaxPassed {
			passed = append(passed, poolv1.PassedReads{Resource: fmt.Sprintf("x%d.v1.", i/2*digest.MaxPassed+j), Bytes: 1000})
		}
		hubs = append(hubs, hub(fmt.Sprint("edge-", i), 0, 0, 0, nil, passed...))
	}
	s = suggest(pool(hubs...), full, nil, now)
	if len(s.Passed) != maxRows || s.Others != 500*digest.MaxPassed*1000-maxRows*2000 || s.Brief().Share != 1 ||
		!strings.Contains(s.Passed[1].Why, "shares 63 resources") {
		t.Errorf("%d rows, %d others, %+v, %s", len(s.Passed), s.Others, s.Brief(), s.Passed[1].Why)
	}
}
