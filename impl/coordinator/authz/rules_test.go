package authz

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/weir-edge/weir/impl/contract"
)

var (
	hubA      = &user.DefaultInfo{Name: "system:node:a", Groups: []string{"weir:pool:p", "openyurt:yurthub"}}
	hubOther  = &user.DefaultInfo{Name: "system:node:a", Groups: []string{"weir:pool:q", "openyurt:yurthub"}}
	reader    = &user.DefaultInfo{Name: "ann", Groups: []string{"weir:viewers", "weir:pool:p"}}
	steward   = &user.DefaultInfo{Name: "eve", Groups: []string{"weir:operators", "weir:pool:p"}}
	masters   = &user.DefaultInfo{Name: "root", Groups: []string{"system:masters"}}
	poolless  = &user.DefaultInfo{Name: "system:node:a", Groups: []string{"openyurt:yurthub"}}
	roleless  = &user.DefaultInfo{Name: "x", Groups: []string{"weir:pool:p"}}
	hubNoNode = &user.DefaultInfo{Name: "x", Groups: []string{"weir:pool:p", "openyurt:yurthub"}}
	emptyNode = &user.DefaultInfo{Name: "system:node:", Groups: []string{"weir:pool:p", "openyurt:yurthub"}}
	second    = &user.DefaultInfo{Name: "weir:coordinator:p:2", Groups: []string{"weir:pool:p", "weir:coordinators"}}
	secondOf  = &user.DefaultInfo{Name: "weir:coordinator:p:2", Groups: []string{"weir:pool:q", "weir:coordinators"}}
	poolOnly  = &user.DefaultInfo{Name: "weir:coordinator:q:2", Groups: []string{"weir:pool:p", "weir:coordinators"}}
	nameless  = &user.DefaultInfo{Name: "weir:coordinator:p:", Groups: []string{"weir:pool:p", "weir:coordinators"}}
	anonymous = &user.DefaultInfo{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
)

func path(u user.Info, verb, p string) authorizer.Attributes {
	return authorizer.AttributesRecord{User: u, Verb: verb, Path: p}
}

func lease(u user.Info, verb, ns, name string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: u, Verb: verb, ResourceRequest: true, APIGroup: "coordination.k8s.io", APIVersion: "v1", Resource: "leases",
		Namespace: ns, Name: name,
	}
}

func resource(u user.Info, verb, group, res, sub string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: u, Verb: verb, ResourceRequest: true, APIGroup: group, APIVersion: "v1", Resource: res, Subresource: sub,
		Namespace: "default",
	}
}

func TestRules(t *testing.T) {
	const slices, discovery = "endpointslices", "discovery.k8s.io"
	rules := New("p", relays(GroupResource{discovery, slices}, GroupResource{"", "endpoints"})).Authorizer()
	for _, c := range []struct {
		name string
		a    authorizer.Attributes
		deny string // part of the reason; "" allows
	}{
		{"anybody reads health", path(anonymous, "get", "/healthz"), ""},
		{"anybody reads readiness", path(anonymous, "get", "/readyz"), ""},
		{"anybody reads the version", path(anonymous, "get", "/version"), ""},
		{"nobody writes health", path(hubA, "post", "/healthz"), "only read"},
		{"metrics need a certificate", path(anonymous, "get", "/metrics"), "not of pool"},
		{"no user at all", path(nil, "get", "/metrics"), "certificate"},
		{
			"a stranger to the pool reads nothing", path(poolless, "get", "/weir/v1/status"),
			`lacks the organization weir:pool:p`,
		},
		{"another pool reads nothing", path(hubOther, "get", "/weir/v1/status"), `of pool "q"`},
		{"another pool lists nothing", lease(hubOther, "list", "", ""), `of pool "q"`},
		{"no role", lease(roleless, "get", "kube-system", "yurthub"), "no role"},
		{"masters get nothing", lease(masters, "get", "kube-system", "yurthub"), "not of pool"},
		{"masters write nothing", lease(masters, "update", "kube-system", "yurthub"), "not of pool"},
		{"a hub is a node", lease(hubNoNode, "get", "kube-system", "yurthub"), "must be of a user"},
		{"a hub has a node name", lease(emptyNode, "update", "kube-node-lease", ""), "must be of a user"},

		{"hub reads Leases", lease(hubA, "watch", "", ""), ""},
		{"hub gets any Lease", lease(hubA, "get", "kube-node-lease", "b"), ""},
		{"hub stands for leader", lease(hubA, "update", "kube-system", "yurthub"), ""},
		{"hub posts a Lease, its name is checked later", lease(hubA, "create", "kube-system", ""), ""},
		{"hub creates the election Lease by PUT", lease(hubA, "create", "kube-system", "yurthub"), ""},
		{
			"hub creates no other Lease by PUT", lease(hubA, "create", "kube-system", "other"),
			"a hub writes the Leases kube-system/yurthub, kube-system/leader-informer-sync and its own kube-node-lease/a only",
		},
		{"hub renews informer sync", lease(hubA, "patch", "kube-system", "leader-informer-sync"), ""},
		{"hub deletes not even its own node's Lease", lease(hubA, "delete", "kube-node-lease", "a"), "a hub deletes nothing"},
		{"hub does not delete the election", lease(hubA, "delete", "kube-system", "yurthub"), "a hub deletes nothing"},
		{"hub leaves other nodes alone", lease(hubA, "update", "kube-node-lease", "b"), "its own kube-node-lease/a"},
		{"hub leaves other namespaces alone", lease(hubA, "create", "default", ""), "a hub writes the Leases"},
		{"names belong to namespaces", lease(hubA, "update", "kube-node-lease", "yurthub"), "a hub writes the Leases"},
		{"hub deletes no collection", lease(hubA, "deletecollection", "kube-system", ""), "one at a time"},
		{"hub impersonates nobody", resource(hubA, "impersonate", "", "users", ""), "a hub writes Leases only"},
		{
			"hub writes no subresource", resource(hubA, "update", "coordination.k8s.io", "leases", "status"),
			"a hub writes Leases only",
		},
		{"hub reads relays", resource(hubA, "watch", discovery, slices, ""), ""},
		{"a write to a relay is for the relay to refuse", resource(hubA, "create", discovery, slices, ""), ""},
		{"only of that group", resource(hubA, "create", "example.com", slices, ""), "a hub writes Leases only"},
		{"hub reads documents", path(hubA, "get", "/weir/v1/documents"), ""},
		{"hub puts no documents", path(hubA, "put", "/weir/v1/documents"), "only read"},
		{"hub deletes no documents", path(hubA, "delete", "/weir/v1/documents"), "only read"},
		{"hub of another pool puts no documents", path(hubOther, "put", "/weir/v1/documents"), `of pool "q"`},
		{"viewer puts no documents", path(reader, "put", "/weir/v1/documents"), "only read"},
		{"hub reads status", path(hubA, "get", "/weir/v1/status"), ""},
		{"hub discovers", path(hubA, "get", "/apis"), ""},

		{"replica reads relays", resource(second, "watch", discovery, slices, ""), ""},
		{"replica reads status", path(second, "get", "/weir/v1/status"), ""},
		{"replica comes again", path(second, "post", "/weir/v1/rejoin"), ""},
		{"replica writes no Lease", lease(second, "update", "kube-system", "yurthub"), "it only reads"},
		{"replica of another pool", path(secondOf, "post", "/weir/v1/rejoin"), `of pool "q"`},
		{"replica without a name", path(nameless, "post", "/weir/v1/rejoin"), "must be of a user weir:coordinator:p:<name>"},
		{
			"replica by its name of another pool", path(poolOnly, "post", "/weir/v1/rejoin"),
			"must be of a user weir:coordinator:p:<name>",
		},
		{"hub brings a denylist", path(hubA, "post", "/weir/v1/denylist"), ""},
		{"replica brings a denylist", path(second, "post", "/weir/v1/denylist"), ""},
		{"hub of another pool brings a denylist", path(hubOther, "post", "/weir/v1/denylist"), `of pool "q"`},
		{"viewer brings no denylist", path(reader, "post", "/weir/v1/denylist"), "only read"},
		{"viewer reads the denylist", path(reader, "get", "/weir/v1/denylist"), ""},
		{"hub is no replica", path(hubA, "post", "/weir/v1/rejoin"), "only read"},
		{"viewer is no replica", path(reader, "post", "/weir/v1/rejoin"), "only read"},

		{"operator reads", lease(steward, "watch", "", ""), ""},
		{"operator reads status", path(steward, "get", "/weir/v1/status"), ""},
		{"operator clears the election", lease(steward, "patch", "kube-system", "yurthub"), ""},
		{"operator deletes freshness", lease(steward, "delete", "kube-system", "leader-informer-sync"), ""},
		{
			"operator creates nothing", lease(steward, "create", "kube-system", "yurthub"),
			"an operator reads, and clears or deletes",
		},
		{"operator lets nodes alone", lease(steward, "delete", "kube-node-lease", "a"), "an operator reads"},
		{"operator deletes no collection", lease(steward, "deletecollection", "kube-system", ""), "an operator reads"},

		{"viewer reads relays", resource(reader, "list", "", "endpoints", ""), ""},
		{"viewer reads metrics", path(reader, "get", "/metrics"), ""},
		{"viewer reads OpenAPI", path(reader, "get", "/openapi/v3"), ""},
		{"viewer writes no Lease", lease(reader, "update", "kube-system", "yurthub"), "weir:viewers only read"},
		{"viewer posts nothing", path(reader, "post", "/weir/v1/status"), "only read"},
		{"viewer impersonates nobody", resource(reader, "impersonate", "", "users", ""), "only read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason, err := rules.Authorize(t.Context(), c.a)
			if err != nil {
				t.Fatal(err)
			}
			if (got == authorizer.DecisionAllow) != (c.deny == "") || !strings.Contains(reason, c.deny) {
				t.Errorf("got %v %q, want denied with %q", got, reason, c.deny)
			}
		})
	}
}

func TestHubOf(t *testing.T) {
	r := New("p", relays())
	if node, why := r.HubOf(hubA); node != "a" || why != "" {
		t.Errorf("%q, %s", node, why)
	}
	for _, u := range []user.Info{
		hubOther, reader, steward, masters, poolless, roleless, hubNoNode, emptyNode, second, anonymous, nil,
	} {
		if node, why := r.HubOf(u); why == "" {
			t.Errorf("%v is the hub of %q", u, node)
		}
	}
}

// TestLate: whose certificate has ended reads, renews the Lease of its own node, brings denylists, and does nothing
// else.
func TestLate(t *testing.T) {
	rules := New("p", relays(GroupResource{"discovery.k8s.io", "endpointslices"})).Authorizer()
	a, b := Reader(hubA), Reader(second)
	for _, c := range []struct {
		a  authorizer.Attributes
		in bool
	}{
		{lease(a, "get", "kube-system", "yurthub"), true},
		{lease(a, "watch", "kube-node-lease", ""), true},
		{resource(a, "list", "discovery.k8s.io", "endpointslices", ""), true},
		{path(a, "get", "/weir/v1/status"), true},
		{path(a, "post", contract.DenylistPath), true},
		{path(a, "post", contract.TrustPath), true},
		{lease(a, "update", "kube-node-lease", "a"), true},
		{lease(a, "create", "kube-node-lease", ""), true},
		{lease(a, "update", "kube-node-lease", "b"), false},
		{lease(a, "create", "kube-system", ""), false},
		{lease(a, "create", "kube-system", "yurthub"), false},
		{lease(a, "update", "kube-system", "yurthub"), false},
		{lease(a, "patch", "kube-system", "leader-informer-sync"), false},
		{path(a, "post", contract.DoubtPath), false},
		{path(a, "post", contract.LinePath), false},
		{path(b, "post", contract.RejoinPath), false},
		{lease(b, "update", "kube-node-lease", ""), false},
		{path(Reader(hubOther), "get", "/weir/v1/status"), false},
	} {
		d, why, err := rules.Authorize(t.Context(), c.a)
		if err != nil || (d == authorizer.DecisionAllow) != c.in {
			t.Errorf("%s %s%s/%s: %v %s", c.a.GetVerb(), c.a.GetPath(), c.a.GetNamespace(), c.a.GetName(), d, why)
		}
	}
	if u := Reader(&user.DefaultInfo{Name: "x", Extra: map[string][]string{"y": {"z"}}}); u.GetExtra()["y"][0] != "z" {
		t.Error("what else was known is lost")
	}
}

// relays tells what is relayed.
func relays(all ...GroupResource) func(GroupResource) bool {
	return func(r GroupResource) bool { return slices.Contains(all, r) }
}
