package hub

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRelayedReads: what the cloud is asked, what callers get, and that it is served from the relay.
func TestRelayedReads(t *testing.T) {
	b := newBed(t, 1)
	cloud := b.clouds[0]
	cloud.put("default", "web")
	cloud.allow = func(user string, a *authorizationv1.ResourceAttributes) bool {
		return user != "bob" && a.Resource == "endpoints"
	}
	b.config.Anonymous = true
	b.start()
	b.fed()
	listed := cloud.lists["weir:hub:pool-a:edge-1"]
	jwt := "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:kube-system:coredns"}`)) +
		".s"
	cloud.set(func() {
		allow := cloud.allow
		cloud.allow = func(user string, a *authorizationv1.ResourceAttributes) bool { return user != jwt && allow(user, a) }
	})
	node := b.ca.tls("system:node:edge-1", "system:nodes")
	tests := []struct {
		name, path string
		header     []string
		code       int
		message    string
		review     string
	}{
		{"list", "/api/v1/endpoints", []string{"Authorization", "Bearer alice"}, 200, "", "alice list endpoints"},
		{"again: remembered", "/api/v1/endpoints", []string{"Authorization", "Bearer alice"}, 200, "", ""},
		{
			"get", "/api/v1/namespaces/default/endpoints/web", []string{"Authorization", "Bearer alice"}, 200, "",
			"alice get endpoints default web",
		},
		{
			"one by field selector", "/api/v1/namespaces/default/endpoints?fieldSelector=metadata.name%3Dweb",
			[]string{"Authorization", "Bearer alice"}, 200, "", "alice list endpoints default web",
		},
		{
			"not found", "/api/v1/namespaces/default/endpoints/none", []string{"Authorization", "Bearer alice"}, 404,
			`endpoints "none" not found`, "alice get endpoints default none",
		},
		{"denied", "/api/v1/namespaces/default/endpoints", []string{"Authorization", "Bearer bob"}, 403,
			`endpoints is forbidden: User "" cannot list resource "endpoints" in API group "" in the namespace "default"`,
			"bob list endpoints default"},
		{
			"watch", "/api/v1/endpoints?watch=1&timeoutSeconds=1", []string{"Authorization", "Bearer alice"}, 200, "",
			"alice watch endpoints",
		},
		{"denied watch", "/api/v1/namespaces/default/endpoints?watch=1", []string{"Authorization", "Bearer bob"}, 403,
			`endpoints is forbidden: User "bob" cannot watch resource "endpoints" in API group "" in the namespace "default"`,
			"bob watch endpoints default"},
		{
			"denied service account", "/apis/discovery.k8s.io/v1/endpointslices", []string{"Authorization", "Bearer " + jwt},
			403,
			`endpointslices.discovery.k8s.io is forbidden: User "system:serviceaccount:kube-system:coredns" cannot list ` +
				`resource "endpointslices" in API group "discovery.k8s.io" at the cluster scope`,
			jwt + " list endpointslices",
		},
		{
			"anonymous", "/api/v1/endpoints", nil, 403,
			`endpoints is forbidden: User "system:anonymous" cannot list resource "endpoints" in API group "" at the ` +
				`cluster scope`, "",
		},
		{"unknown token", "/api/v1/endpoints", []string{"Authorization", "Bearer expired"}, 401, "Unauthorized", ""},
		{
			"impersonation", "/api/v1/endpoints", []string{"Authorization", "Bearer admin", "Impersonate-User", "carol"}, 200,
			"", "carol list endpoints",
		},
		{
			"impersonation that is not allowed", "/api/v1/endpoints",
			[]string{"Authorization", "Bearer alice", "Impersonate-User", "carol"}, 403,
			`User "alice" cannot impersonate resource "users"`, "",
		},
		{"this node", "/api/v1/endpoints", []string{"cert", ""}, 200, "", "system:node:edge-1 list endpoints"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client := b.client(nil)
			if len(test.header) > 0 && test.header[0] == "cert" {
				client = b.client(&node)
				test.header = nil
			}
			before := cloud.reviewed()
			resp, body := get(t, client, b.url()+test.path, test.header...)
			if resp.StatusCode != test.code {
				t.Fatalf("got %d %s", resp.StatusCode, body)
			}
			if test.message != "" {
				var s metav1.Status
				check(t, json.Unmarshal([]byte(body), &s))
				if !strings.Contains(s.Message, test.message) || s.Code != int32(test.code) {
					t.Errorf("got  %s\nwant %s", s.Message, test.message)
				}
			}
			var want []string
			if test.review != "" {
				want = []string{test.review}
			}
			if got := cloud.reviewed()[len(before):]; !slices.Equal(got, want) {
				t.Errorf("the cloud was asked %q, want %q", got, want)
			}
		})
	}
	if n := cloud.lists["weir:hub:pool-a:edge-1"]; n != listed || len(cloud.lists) != 1 {
		t.Errorf("reads went to the cloud: %v", cloud.lists)
	}
}
