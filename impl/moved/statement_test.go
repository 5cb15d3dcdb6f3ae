package moved

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestFromStatus: what a status says of a pod beyond what the cloud has shown.
func TestFromStatus(t *testing.T) {
	status := func(phase corev1.PodPhase, ready bool, ips ...string) corev1.PodStatus {
		s := corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse},
		}}
		if ready {
			s.Conditions[1].Status = corev1.ConditionTrue
		}
		for _, ip := range ips {
			s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
		}
		return s
	}
	old := status(corev1.PodRunning, true, "10.0.0.1", "fd00::1")
	single := status(corev1.PodRunning, true)
	single.PodIP = "10.0.0.9"
	for name, c := range map[string]struct {
		of   corev1.PodStatus
		host bool
		want string
	}{
		"the same":              {of: old},
		"other addresses":       {of: status(corev1.PodRunning, true, "10.0.0.9", "fd00::9"), want: "p=10.0.0.9,fd00::9"},
		"one family is lost":    {of: status(corev1.PodRunning, true, "10.0.0.1"), want: "p=10.0.0.1"},
		"podIP alone":           {of: single, want: "p=10.0.0.9"},
		"not ready":             {of: status(corev1.PodRunning, false, "10.0.0.1", "fd00::1"), want: "p~10.0.0.1,fd00::1"},
		"without addresses":     {of: status(corev1.PodPending, true), want: "p~"},
		"failed":                {of: status(corev1.PodFailed, true, "10.0.0.1"), want: "p!"},
		"done":                  {of: status(corev1.PodSucceeded, false), want: "p!"},
		"the node's network":    {of: status(corev1.PodRunning, true, "192.168.0.7"), host: true, want: "p=h192.168.0.7"},
		"nobody can reach that": {of: status(corev1.PodRunning, true, "127.0.0.1")},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}, Spec: corev1.PodSpec{HostNetwork: c.host}, Status: old}
		got, ok := FromStatus(pod, &c.of)
		if ok != (c.want != "") || ok && string(got.appendText(nil)) != c.want {
			t.Errorf("%s: %s, %t, want %q", name, got.appendText(nil), ok, c.want)
		}
	}
}

// TestStaticPods: of a static pod the cloud has a mirror, whose uid slices name. The kubelet has another uid of it,
// which is the hash of its file, and reports its status under that of the mirror.
func TestStaticPods(t *testing.T) {
	const hash = "6b3f7c9d1e2a4b5c8d7e6f5a4b3c2d1e"
	mirror := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: "2f9c5c1e-0b7e-4a53-9d43-7c0f2d8b6a11", Annotations: map[string]string{
				"kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash, "kubernetes.io/config.source": "file",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "a", UID: "of-a"}},
		},
		Spec: corev1.PodSpec{NodeName: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
	now := mirror.Status
	now.PodIP, now.Conditions = "10.0.0.9", []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	c, ok := FromStatus(mirror, &now)
	if !ok || c.UID != mirror.UID {
		t.Fatalf("%+v, %t, want one of %s", c, ok, mirror.UID)
	}
	s := pool(t, "a")
	st, _ := NewStatement("a", 1, 1, []Correction{c})
	if _, err := s.Take(st); err != nil {
		t.Fatal(err)
	}
	of := string(mirror.UID) + "@a "
	if got := shows(s, of+"10.0.0.1 rs"); got != of+"10.0.0.9 rs-" {
		t.Errorf("a slice leads to %s", got)
	}
}

// TestStatement: a statement is short, the same for the same corrections, and read as it was written.
func TestStatement(t *testing.T) {
	all := []Correction{
		{UID: "b", Addresses: addresses("10.0.0.1", "fd00::1"), Ready: true}, {UID: "a", Gone: true},
		{UID: "c", Addresses: addresses("192.168.0.7"), Host: true}, {UID: "d"},
	}
	s, left := NewStatement("edge-1", 36, 37, all)
	const want = "edge-1 10 11 a! b=10.0.0.1,fd00::1 c~h192.168.0.7 d~"
	if s.String() != want || left != 0 {
		t.Errorf("%q, %d left out, want %q", s, left, want)
	}
	later := s
	later.At = Reached{100, 0, 7}
	if want := "edge-1 10 11 @2s,0,7 a!"; !strings.HasPrefix(later.String(), want) {
		t.Errorf("%q, want %q", later, want)
	}
	for _, s := range []Statement{
		s, later, s.Again(99), {Node: "edge-1", Number: 1, Beat: 1}, {Node: "edge-1", Number: 1, Beat: 1, At: Reached{0, 7}},
	} {
		if got, err := ParseStatement(s.String()); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("read back %+v %v, want %+v", got, err, s)
		}
	}
	if s.Again(99).String() != "edge-1 10 2r same" {
		t.Errorf("%q", s.Again(99))
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "edge-2"}}
	if s.Owns(pod) {
		t.Error("it owns the pod of another node")
	}
}

// TestStatementBounds: the largest one can be read, and what does not fit is counted.
func TestStatementBounds(t *testing.T) {
	var all []Correction
	for i := range MaxPods + 3 {
		all = append(all, Correction{
			UID:       "0123456789012345678901234567890123456789012345678901234567" + types.UID(digits(i)),
			Addresses: addresses("255.255.255.255", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"), Host: true,
		})
	}
	s, left := NewStatement(strings.Repeat("n", 60)+strings.Repeat("."+strings.Repeat("n", 63), 3), 1<<63, 1<<63, all)
	s.At = Reached{1 << 63, 1 << 63, 1 << 63}
	if got, err := ParseStatement(s.String()); err != nil || left != 3 || !reflect.DeepEqual(got, s) {
		t.Errorf("%d bytes, %d left out, %v", len(s.String()), left, err)
	}
	t.Logf("%d bytes", len(s.String()))
}

// TestStatementErrors: an error names the field.
func TestStatementErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "fields",
		"a 1":                             "fields",
		"A 1 1":                           "node",
		"a 0 1":                           "number",
		"a 01 1":                          "number",
		"a 1 -1":                          "beat",
		"a 1 1 ":                          "correction 1: state",
		"a 1 1 @":                         "versions",
		"a 1 1 @0,0,0 x!":                 "versions",
		"a 1 1 @1,1 x!":                   "versions",
		"a 1 1 @1,1,1,1":                  "versions",
		"a 1 1 @1,01,1":                   "versions",
		"a 1 1 x! @1,0,0":                 "correction 2: state",
		"a 1 1 x":                         "state",
		"a 1 1 same x!":                   "state",
		"a 1 1 =":                         "uid",
		"a 1 1 x/y=":                      "uid",
		"a 1 1 x=":                        "state",
		"a 1 1 x!10.0.0.1":                "state",
		"a 1 1 x=10.0.0.01":               "addresses",
		"a 1 1 x=FD00::1":                 "addresses",
		"a 1 1 x=fd00::1,fd00::2":         "addresses",
		"a 1 1 x=1.1.1.1,fd00::2,2.2.2.2": "addresses",
		"a 1 1 x=127.0.0.1":               "addresses",
		"a 1 1 x=fe80::1":                 "addresses",
		"a 1 1 x=::ffff:10.0.0.1":         "addresses",
		"a 1 1 x=fd00::1%eth0":            "addresses",
		"a 1 1 y! x!":                     "correction 2: uid",
		"a 1 1 x! x!":                     "correction 2: uid",
		"a 1 1" + strings.Repeat(" x!", MaxPods+1): "corrections",
		strings.Repeat("a", MaxText+1):             "length",
		strings.Repeat("a", 300) + " 1 1":          "node",
	} {
		if _, err := ParseStatement(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s named", text, err, want)
		}
	}
}

// FuzzStatement: what can be read is written as it was, and is within its bounds.
func FuzzStatement(f *testing.F) {
	for _, s := range []string{
		"edge-1 10 11 a! b=10.0.0.1,fd00::1 c~h192.168.0.7 d~", "a 1 1 same", "a 1 1", "a 1 1 x=h1.1.1.1", "a z zz x~ y!",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseStatement(text)
		if err != nil {
			return
		}
		if s.String() != text {
			t.Errorf("%q is written as %q", text, s)
		}
		if len(s.Corrections) > MaxPods || s.Same && len(s.Corrections) > 0 {
			t.Errorf("%d corrections", len(s.Corrections))
		}
		again, left := NewStatement(s.Node, s.Number, s.Beat, s.Corrections)
		if left > 0 || !s.Same && again.String() != text {
			t.Errorf("%q is made as %q", text, again)
		}
	})
}

func errorIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func digits(i int) string { return fmt.Sprintf("%06d", i) }
