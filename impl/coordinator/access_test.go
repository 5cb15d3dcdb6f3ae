package coordinator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
)

const slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"

// TestAccess asks over the wire; the rules themselves have a table in package authz.
func TestAccess(t *testing.T) {
	s := newPool(t).start()
	callers := map[string]*caller{
		"nobody": s.as(""), "hub": s.hub("a"), "viewer": s.viewer(),
		"other pool": s.as("system:node:a", contract.HubGroup, contract.PoolGroupPrefix+"q"),
		"masters":    s.as("root", "system:masters"),
		"both":       s.as("root", "system:masters", contract.PoolGroupPrefix+"p"),
	}
	lease := func(name string) string {
		return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{` + name +
			`},"spec":{"holderIdentity":"a_1"}}`
	}
	const nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	const documents = contract.DocumentsPath
	for _, c := range []struct {
		who, method, path, body string
		code                    int
		says                    string
	}{
		{"nobody", "GET", "/healthz", "", 200, "ok"},
		{"nobody", "GET", "/livez", "", 200, "ok"},
		{"nobody", "GET", "/readyz", "", 500, "endpointslices"},
		{"nobody", "GET", "/version", "", 200, "gitVersion"},
		{"nobody", "GET", "/metrics", "", 401, ""},
		{"nobody", "GET", leasesPath, "", 401, ""},
		{"nobody", "GET", slicesPath, "", 401, ""},
		{"nobody", "GET", documents + "?path=/version", "", 401, ""},

		{"hub", "GET", leasesPath, "", 200, ""},
		{"hub", "POST", leasesPath, lease(`"name":"yurthub"`), 201, ""},
		{"hub", "POST", leasesPath, lease(`"name":"leader-informer-sync"`), 201, ""},
		{"hub", "DELETE", leasesPath + "/yurthub", "", 403, "deletes nothing"},
		{"hub", "DELETE", nodeLeases + "/a", "", 403, "deletes nothing"},
		{"hub", "POST", leasesPath, lease(`"name":"other"`), 403, "yurthub"},
		{"hub", "POST", leasesPath, lease(`"generateName":"yurthub"`), 403, ""},
		{"hub", "PUT", leasesPath + "/other", lease(`"name":"other"`), 403, ""},
		{"hub", "POST", nodeLeases, lease(`"name":"a"`), 201, ""},
		{"hub", "POST", nodeLeases, lease(`"name":"b"`), 403, "kube-node-lease/a"},
		{"hub", "DELETE", nodeLeases + "/b", "", 403, ""},
		{"hub", "DELETE", leasesPath, "", 403, ""},
		{"hub", "GET", slicesPath, "", 503, "synced"},
		{"hub", "POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "{}", 405, ""},
		{"hub", "DELETE", "/api/v1/namespaces/default/endpoints/x", "", 405, ""},
		{"hub", "GET", contract.StatusPath, "", 200, "incarnation"},
		{"hub", "GET", documents + "?path=/version", "", 404, ""},
		{"hub", "PUT", documents + "?path=/version", "{}", 403, "only read"},

		{"viewer", "GET", leasesPath, "", 200, "yurthub"},
		{"viewer", "GET", "/metrics", "", 200, "weir_relay_synced"},
		{"viewer", "GET", contract.StatusPath, "", 200, ""},
		{"viewer", "PUT", leasesPath + "/yurthub", lease(`"name":"yurthub"`), 403, "viewers"},
		{"viewer", "DELETE", leasesPath + "/yurthub", "", 403, ""},
		{"viewer", "PUT", documents + "?path=/version", "{}", 403, ""},

		{"other pool", "GET", leasesPath, "", 403, `pool`},
		{"other pool", "GET", slicesPath, "", 403, ""},
		{"other pool", "GET", documents + "?path=/version", "", 403, ""},
		{"other pool", "GET", contract.StatusPath, "", 403, ""},
		{"masters", "GET", leasesPath, "", 403, ""},
		{"masters", "DELETE", leasesPath, "", 403, ""},
		{"both", "GET", leasesPath, "", 403, ""},
	} {
		t.Run(c.who+" "+c.method+" "+strings.ReplaceAll(c.path, "/", " "), func(t *testing.T) {
			caller := *callers[c.who]
			caller.t = t
			answer := caller.want(c.code, c.method, c.path, c.body)
			if !strings.Contains(answer, c.says) {
				t.Errorf("%s does not say %q", answer, c.says)
			}
			if c.code >= 401 && c.code <= 405 && !strings.HasPrefix(c.path, documents) &&
				!strings.Contains(answer, `"kind":"Status"`) {
				t.Errorf("%s is no Status", answer)
			}
		})
	}
}

// TestImpersonation: nobody lends another's rights.
func TestImpersonation(t *testing.T) {
	s := newPool(t).start()
	for _, c := range []*caller{s.hub("a"), s.viewer()} {
		c.want(http.StatusForbidden, http.MethodGet, leasesPath, "", "Impersonate-User", "system:node:b", "Impersonate-Group",
			"system:masters")
	}
}
