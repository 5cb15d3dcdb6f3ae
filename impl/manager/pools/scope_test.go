package pools

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestScope: a CRD that OpenYurt installed lets anything in. What cannot be shared is left out, and the rest is shared.
func TestScope(t *testing.T) {
	in := func(names ...string) (all []nodepool.Resource) {
		for _, n := range names {
			part := strings.SplitN(n, "/", 3)
			all = append(all, nodepool.Resource{Group: part[0], Version: part[1], Resource: part[2]})
		}
		return all
	}
	for name, c := range map[string]struct {
		all    []nodepool.Resource
		text   string
		reason string
		says   string
	}{
		"usual": {
			in("discovery.k8s.io/v1/endpointslices", "/v1/services"), "/v1/services,discovery.k8s.io/v1/endpointslices",
			"Accepted", "2",
		},
		"nothing": {nil, "", "Accepted", "0"},
		"twice":   {in("/v1/services", "/v1/services"), "/v1/services", "Accepted", "1"},
		"Secrets": {in("/v1/secrets", "/v1/services"), "/v1/services", "Refused", "Secrets are never shared"},
		"Leases": {
			in("coordination.k8s.io/v1/leases", "/v1/services"), "/v1/services", "Refused", "Leases are never shared",
		},
		"others": {in("example.com/v1/secrets"), "example.com/v1/secrets", "Accepted", "1"},
		"two versions": {
			in("a.b/v2/things", "a.b/v1/things"), "a.b/v2/things", "Refused", "a.b/v1/things: it is shared as v2",
		},
		"no resource":   {in("a.b/v1/"), "", "Refused", "want a group"},
		"no version":    {in("a.b//things"), "", "Refused", "want a group"},
		"a comma":       {in("a.b/v1/things,/v1/secrets"), "", "Refused", "want a group"},
		"upper case":    {in("/v1/Secrets"), "", "Refused", "want a group"},
		"a star":        {in("/v1/*", "/v1/services"), "/v1/services", "Refused", "want a group"},
		"a bad group":   {in("a_b/v1/things", "/v1/services"), "/v1/services", "Refused", "want a group"},
		"a subresource": {in("/v1/pods/log"), "", "Refused", "want a group"},
		"not served": {
			in("gone.b/v1/things", "/v1/services"), "/v1/services,gone.b/v1/things", "NotServed", "gone.b/v1/things",
		},
	} {
		s := scopeOf(c.all, func(r nodepool.Resource) (string, error) {
			return map[bool]string{true: "Kind"}[r.Group != "gone.b"], nil
		})
		if got := s.condition(); s.text() != c.text || got.Reason != c.reason || !strings.Contains(got.Message, c.says) ||
			(got.Status == metav1.ConditionTrue) != (c.reason == "Accepted") {
			t.Errorf("%s: %q, %+v", name, s.text(), got)
		}
	}
	s := scopeOf(in("/v1/services", "down.b/v1/things"), func(r nodepool.Resource) (string, error) {
		if r.Group == "down.b" {
			return "", errors.New("away")
		}
		return "Kind", nil
	})
	if got := s.condition(); s.text() != "/v1/services,down.b/v1/things" || got.Reason != "NotKnown" ||
		got.Status != metav1.ConditionUnknown || !strings.Contains(got.Message, "things (away)") || !s.lacking() {
		t.Errorf("a group of which the server is down: %q, %+v", s.text(), got)
	}
}

// TestPlan: hubs are told what their Pool says, and of leaders only if there are to be some.
func TestPlan(t *testing.T) {
	leads := nodepool.Spec{EnableLeaderElection: true, InterConnectivity: true}
	at := &poolv1.Coordinator{Servers: []string{"https://a:1"}}
	for name, c := range map[string]struct {
		nodepool    *nodepool.Spec
		own         *poolv1.Spec
		wire, where string
		reason      string
	}{
		"no Pool":     {&leads, nil, "", "", ""},
		"no NodePool": {nil, &poolv1.Spec{Mode: poolv1.ModeLeaderHubs}, "", "", "NoNodePool"},
		"a coordinator": {
			&leads, &poolv1.Spec{Mode: poolv1.ModeCoordinator, Coordinator: at}, "coordinator", "https://a:1", "Applied",
		},
		"a coordinator of their flags": {&leads, &poolv1.Spec{Mode: poolv1.ModeCoordinator}, "coordinator", "", "Applied"},
		"leaders": {
			&leads, &poolv1.Spec{Mode: poolv1.ModeLeaderHubs, Coordinator: at}, "leader-hubs", "", "Applied",
		},
		"leaders that nobody elects": {
			&nodepool.Spec{InterConnectivity: true}, &poolv1.Spec{Mode: poolv1.ModeLeaderHubs, Coordinator: at}, "coordinator",
			"https://a:1", "NoLeaderElection",
		},
		"leaders that nobody reaches": {
			&nodepool.Spec{EnableLeaderElection: true}, &poolv1.Spec{Mode: poolv1.ModeLeaderHubs}, "coordinator", "",
			"NoLeaderElection",
		},
	} {
		var p *nodepool.NodePool
		var own *poolv1.Pool
		if c.nodepool != nil {
			p = &nodepool.NodePool{Spec: *c.nodepool}
		}
		if c.own != nil {
			own = &poolv1.Pool{Spec: *c.own}
		}
		if got := planOf(p, own); got.wire() != c.wire || strings.Join(got.coordinators, ",") != c.where ||
			got.applied.Reason != c.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
