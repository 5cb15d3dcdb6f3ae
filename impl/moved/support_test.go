package moved

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// point is an endpoint in short form: "uid@node address state", where the state has r (ready), s (serving) and t
// (terminating). Without uid@ it has no targetRef.
func point(text string) discoveryv1.Endpoint {
	f := strings.Fields(text)
	e := discoveryv1.Endpoint{Addresses: []string{f[len(f)-2]}}
	if uid, node, ok := strings.Cut(f[0], "@"); ok {
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: uid, UID: types.UID(uid)}
		if node != "" {
			e.NodeName = &node
		}
	}
	has := func(x string) *bool { return ptr.To(strings.Contains(f[len(f)-1], x)) }
	e.Conditions = discoveryv1.EndpointConditions{Ready: has("r"), Serving: has("s"), Terminating: has("t")}
	return e
}

// short is the short form.
func short(e discoveryv1.Endpoint) string {
	state := ""
	for _, x := range []struct {
		is   *bool
		name string
	}{{e.Conditions.Ready, "r"}, {e.Conditions.Serving, "s"}, {e.Conditions.Terminating, "t"}} {
		if is(x.is, false) {
			state += x.name
		}
	}
	of := ""
	if e.TargetRef != nil {
		of = string(e.TargetRef.UID) + "@" + ptr.Deref(e.NodeName, "") + " "
	}
	return fmt.Sprintf("%s%s %s", of, strings.Join(e.Addresses, ","), state+"-")
}

// sliceOf is a slice of endpoints in short form.
func sliceOf(name string, family discoveryv1.AddressType, points ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("of-" + name), Labels: map[string]string{serviceLabel: "web"},
		},
		AddressType: family,
	}
	for _, p := range points {
		s.Endpoints = append(s.Endpoints, point(p))
	}
	return s
}

// correction is one in the form of a statement.
func correction(t testing.TB, text string) Correction {
	t.Helper()
	c, err := parseCorrection(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// says has a node state corrections.
func says(t testing.TB, s *Set, node string, number uint64, texts ...string) (changed bool) {
	t.Helper()
	var all []Correction
	for _, x := range texts {
		all = append(all, correction(t, x))
	}
	st, _ := NewStatement(node, number, number, all)
	changed, err := s.Take(st)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// pool is a Set of some nodes, while the cloud is away.
func pool(t testing.TB, nodes ...string) *Set {
	t.Helper()
	s := &Set{}
	if err := s.Members(nodes); err != nil {
		t.Fatal(err)
	}
	s.Away(true, 0)
	s.Expire(0)
	return s
}

func addresses(texts ...string) (all []netip.Addr) {
	for _, x := range texts {
		all = append(all, netip.MustParseAddr(x))
	}
	return all
}
