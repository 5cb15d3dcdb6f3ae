package hub

import (
	"net/http"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestRightsWithoutCloud: while the cloud is away everybody may do what it let them do, and is told why not else; also
// after a restart.
func TestRightsWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	b.clouds[0].put("default", "web")
	b.clouds[0].allow = func(user string, _ *authorizationv1.ResourceAttributes) bool { return user != "bob" }
	cert, stranger := b.ca.tls("system:node:edge-1", "system:nodes"), b.ca.tls("system:node:edge-2", "system:nodes")
	node, other, client := b.client(&cert), b.client(&stranger), b.client(nil)
	b.config.Anonymous = true
	stop := b.start()
	b.here()
	as := func(c *http.Client, path string, header ...string) int {
		resp, _ := get(t, c, b.url()+path, header...)
		return resp.StatusCode
	}
	const list, watch = "/api/v1/endpoints",
		"/api/v1/namespaces/default/endpoints?watch=1&timeoutSeconds=1&resourceVersion=101"
	bearer := func(user string) []string { return []string{"Authorization", "Bearer " + user} }
	for _, seen := range []struct {
		who  *http.Client
		as   []string
		path string
		code int
	}{
		{node, nil, list, 200}, {client, bearer("alice"), list, 200}, {client, bearer("bob"), watch, 403},
		{client, bearer("expired"), watch, 401},
		{client, append(bearer("admin"), "Impersonate-User", "carol"), list, 200}, {client, nil, list, 200},
	} {
		if code := as(seen.who, seen.path, seen.as...); code != seen.code {
			t.Fatalf("%v got %d from the cloud, want %d", seen.as, code, seen.code)
		}
	}
	b.kept(3)
	link.set(true)
	b.away()
	for round := range 2 {
		for name, test := range map[string]struct {
			who  *http.Client
			path string
			as   []string
			code int
		}{
			"the node":                          {node, list, nil, 200},
			"the node, a part":                  {node, "/api/v1/namespaces/default/endpoints/web", nil, 200},
			"the node, what it never read":      {node, "/api/v1/secrets", nil, 503},
			"who was allowed":                   {client, list, bearer("alice"), 200},
			"who was allowed, a part":           {client, "/api/v1/namespaces/default/endpoints", bearer("alice"), 200},
			"who was denied":                    {client, watch, bearer("bob"), 403},
			"who was denied, what he never did": {client, list, bearer("bob"), 503},
			"whom it never saw":                 {client, list, bearer("mallory"), 503},
			"in another's name":                 {client, list, append(bearer("admin"), "Impersonate-User", "carol"), 200},
			"without that name":                 {client, list, bearer("admin"), 503},
			"in a third name":                   {client, list, append(bearer("admin"), "Impersonate-User", "dave"), 503},
			"the node in another's name":        {node, list, []string{"Impersonate-User", "carol"}, 503},
			"another node":                      {other, list, nil, 401},
			"nobody, whom the cloud let read":   {client, list, nil, 401},
		} {
			if code := as(test.who, test.path, test.as...); code != test.code {
				t.Errorf("round %d: %s gets %d, want %d", round, name, code, test.code)
			}
		}
		// 401 while the cloud's is remembered.
		if code := as(client, watch, bearer("expired")...); code != 429 && (code != 401 || round > 0) {
			t.Errorf("round %d: whom the cloud does not know gets %d", round, code)
		}
		if round == 0 {
			stop()
			stop = b.start()
		}
	}
}
