package audit

import (
	_ "embed"
	"io"
	"slices"
	"strings"
	"testing"
)

const roles = `
kind: ClusterRole
metadata: {name: "weir:hub"}
rules:
- apiGroups: [""]
  resources: [endpoints]
  verbs: [list, watch]
- nonResourceURLs: [/version]
  verbs: [get]
---
kind: ClusterRole
metadata: {name: "weir:joins"}
rules:
- apiGroups: [certificates.k8s.io]
  resources: [certificatesigningrequests]
  verbs: [create]
---
kind: ConfigMap
metadata: {name: other}
---
kind: Role
metadata: {name: "weir:manager", namespace: kube-system}
rules:
- apiGroups: ["", coordination.k8s.io]
  resources: [nodes/status]
  resourceNames: [a, b]
  verbs: [patch]
`

// log is what kube-apiserver wrote; its last line was cut off.
//
//go:embed testdata/audit.log
var log string

// TestUse: what a role allowed is used, whoever else allows as much is none of its grants, and what is refused is told
// once.
func TestUse(t *testing.T) {
	grants, err := Grants(roles)
	if err != nil || len(grants) != 6 {
		t.Fatalf("%v, %v", grants, err)
	}
	var use Use
	if err := use.Read(strings.NewReader(log)); err != nil || use.Events != 10 {
		t.Fatalf("%d events, %v", use.Events, err)
	}
	var unused []string
	for _, g := range use.Unused(grants) {
		unused = append(unused, g.String())
	}
	if want := []string{
		"ClusterRole weir:hub: get /version", "ClusterRole weir:hub: list endpoints",
		"Role kube-system/weir:manager: patch nodes/status.coordination.k8s.io",
	}; !slices.Equal(unused, want) {
		t.Errorf("unused: %q", unused)
	}
	if want := []string{
		"weir:m: list secrets", "weir:m: get secrets x/y", "weir:hub:a:c: get nodes", "weir:hub:a:b: list pods",
	}; !slices.Equal(use.Refused, want) {
		t.Errorf("refused: %q", use.Refused)
	}
}

// TestBrokenLogs: only the last line may be half.
func TestBrokenLogs(t *testing.T) {
	for _, bad := range []string{"{\n{}\n", strings.Repeat("x", maxEvent+1)} {
		if err := new(Use).Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%.9q is read", bad)
		}
	}
	if _, err := Grants("kind: [\n"); err == nil {
		t.Error("a broken manifest is read")
	}
}

// TestReports: that the report of a leader is refused counts where weir-manager is, which grants it. What else is
// refused of that Lease always counts.
func TestReports(t *testing.T) {
	const forbidden = `{"verb":"VERB","user":{"username":"USER"},"objectRef":{"apiGroup":"coordination.k8s.io",` +
		`"resource":"leases","namespace":"weir-pki","name":"weir-heard-a"},` +
		`"annotations":{"authorization.k8s.io/decision":"forbid"}}` + "\n"
	refused := func(verb, user string) string {
		return strings.NewReplacer("VERB", verb, "USER", user).Replace(forbidden)
	}
	report := refused("patch", "weir:forwarder:a:a-1")
	managed := `{"verb":"list","user":{"username":"` + manager + `"}}` + "\n"
	for what, c := range map[string]struct {
		log  string
		want int
	}{
		"without weir-manager":          {report, 0},
		"with it":                       {report + managed + report, 1},
		"a read of it":                  {refused("get", "weir:forwarder:a:a-1"), 1},
		"by somebody who leads nothing": {refused("patch", "weir:hub:a:a-1"), 1},
	} {
		var use Use
		if err := use.Read(strings.NewReader(c.log)); err != nil {
			t.Fatal(err)
		}
		if len(use.Refused) != c.want {
			t.Errorf("%s: %q is refused, want %d", what, use.Refused, c.want)
		}
	}
	var use Use
	for _, log := range []string{managed, report} {
		if err := use.Read(strings.NewReader(log)); err != nil {
			t.Fatal(err)
		}
	}
	if len(use.Refused) != 0 {
		t.Errorf("%q is refused by another weir-manager", use.Refused)
	}
}

// TestAfter: what stands behind a mark begins with a whole line, wherever the mark is.
func TestAfter(t *testing.T) {
	long := strings.Repeat("b", 10000) // more than a buffer
	for at, want := range map[int64]string{
		0: "aa\n" + long + "\nc\n", 1: long + "\nc\n", 3: long + "\nc\n", 4: "c\n", 10003: "c\n", 10004: "c\n",
		10006: "",
	} {
		r, err := After(strings.NewReader("aa\n"+long+"\nc\n"), at)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("after %d: %.20q, %v, want %.20q", at, got, err, want)
		}
	}
	if r, err := After(strings.NewReader("aa\nb"), 4); err != nil {
		t.Error(err)
	} else if got, err := io.ReadAll(r); err != nil || len(got) > 0 {
		t.Errorf("of a line that has not ended: %q, %v", got, err)
	}
}
