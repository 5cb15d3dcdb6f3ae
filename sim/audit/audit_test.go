package audit

import (
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

const log = `{"verb":"watch","requestURI":"/api/v1/endpoints?watch=1","user":{"username":"weir:hub:a:b"},"objectRef":{"resource":"endpoints"},"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"weir:hub\" of ClusterRole \"weir:hub\" to Group \"openyurt:yurthub\""}}
{"verb":"get","requestURI":"/version?x","user":{"username":"weir:hub:a:b"},"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\""}}
{"verb":"patch","requestURI":"/api/v1/nodes/a/status","user":{"username":"system:serviceaccount:kube-system:weir-manager"},"objectRef":{"resource":"nodes","subresource":"status","name":"a"},"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by RoleBinding \"x/kube-system\" of Role \"weir:manager\" to User \"m\""}}
{"verb":"list","requestURI":"/api/v1/secrets","user":{"username":"weir:m"},"objectRef":{"resource":"secrets"},"annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":""}}
{"verb":"list","requestURI":"/api/v1/secrets","user":{"username":"weir:m"},"objectRef":{"resource":"secrets"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"get","requestURI":"/api/v1/namespaces/x/secrets/y","user":{"username":"weir:m"},"objectRef":{"resource":"secrets","namespace":"x","name":"y"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"list","requestURI":"/api/v1/secrets","user":{"username":"alice"},"objectRef":{"resource":"secrets"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"list","userAgent":"thief","requestURI":"/api/v1/nodes","user":{"username":"weir:hub:a:b"},"objectRef":{"resource":"nodes"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"get","requestURI":"/api/v1/nodes/c","user":{"username":"weir:hub:a:c"},"objectRef":{"resource":"nodes","name":"c"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"delete","requestURI":"/api/v1/nodes/c","user":{"username":"admin"},"objectRef":{"resource":"nodes","name":"c"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"list","requestURI":"/api/v1/pods","user":{"username":"weir:hub:a:c"},"objectRef":{"resource":"pods"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"list","requestURI":"/api/v1/pods","user":{"username":"weir:hub:a:b"},"objectRef":{"resource":"pods"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"create","requestURI":"/apis/certificates.k8s.io/v1/certificatesigningrequests","user":{"username":"system:bootstrap:abcdef"},"objectRef":{"apiGroup":"certificates.k8s.io","resource":"certificatesigningrequests"},"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"weir:joins\" of ClusterRole \"weir:joins\" to Group \"system:bootstrappers\""}}
{"verb":"li`

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
