package attack

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	poolLeases = "/apis/coordination.k8s.io/v1/namespaces/" + contract.LeaseNamespace + "/leases"
	nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/" + contract.NodeLeaseNamespace + "/leases"
	// forAges is as long as a Lease can say.
	forAges = 1<<31 - 1
	// longestLease is the longest time for which a Lease of a pool may be held without a renewal.
	longestLease = 60
)

var (
	refusedWrite = []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusConflict, http.StatusUnprocessableEntity,
	}
)

// led is a pool with one hub, which leads, and a second node, whose key the attacker has.
func led(number string) *place {
	return &place{
		name: "led-" + number, mode: runtime.Weir, nodes: 2, hubs: []int{1}, coordinators: 1, flags: swift(),
	}
}

// coordinatorPaths are all that a coordinator has for callers of its pool.
func coordinatorPaths() []ask {
	return []ask{
		{path: poolLeases}, {path: poolLeases + "/" + contract.ElectionLease}, {path: nodeLeases + "?watch=1"},
		{path: slices1}, {path: slices1 + "?watch=1"}, {
			path: "/api/v1/endpoints",
		},
		{path: contract.StatusPath}, {path: "/metrics"}, {path: contract.DocumentsPath + "?path=/apis"}, {path: "/api"},
		{path: "/apis"}, {path: "/openapi/v2"}, {
			path: "/openapi/v3",
		},
		{path: "/debug/pprof/"}, {path: "/healthz/etcd"}, {path: "/readyz/x"}, {path: "/logs"}, {path: "/"},
		{path: "/%68ealthz/../metrics"}, {path: "/version/"}, {
			path: "/livez?verbose&x=/metrics", method: http.MethodPost,
		},
		{path: contract.PulsePath, method: http.MethodPost, body: "x"}, {
			path: contract.RejoinPath, method: http.MethodPost, body: "{}",
		},
		{path: contract.DocumentsPath + "?path=/apis", method: http.MethodPut, body: "{}"}, {
			path: poolLeases, method: http.MethodPost, body: electionLease("stranger_1"),
		},
		{path: poolLeases + "/" + contract.ElectionLease, method: http.MethodDelete},
	}
}

// all gives asks to somebody.
func all(asks []ask, as string, codes ...int) []ask {
	for i := range asks {
		asks[i].as, asks[i].at, asks[i].codes = as, coordinatorDoor, codes
	}
	return asks
}

func electionLease(holder string) string {
	const seconds = 15
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	return fmt.Sprintf(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":%q,"namespace":%q},`+
		`"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d,"acquireTime":%q,"renewTime":%q,"leaseTransitions":1}}`,
		contract.ElectionLease, contract.LeaseNamespace, holder, seconds, now, now)
}

func coordinatorAttacks() []Attack {
	here := harbour()
	member := ask{as: "member", at: coordinatorDoor, path: slices1, codes: ok}
	shared := []Attack{
		{
			Number: "47", Position: Neighbour, Goal: "read or write the pool without a certificate",
			Sent: "every path of the coordinator but the four public ones", Expected: "401 or 403",
			Control: "a hub of the pool reads, and the four answer",
			asks:    all(coordinatorPaths(), "", 400, 401, 403, 404, 405), controls: []ask{
				member, {at: coordinatorDoor, path: "/healthz", codes: ok}, {at: coordinatorDoor, path: "/livez", codes: ok},
				{at: coordinatorDoor, path: "/version", codes: ok}, {
					as: "viewer", at: coordinatorDoor, path: contract.StatusPath, codes: ok,
				},
			},
		},
		{
			Number: "47b", Position: Neighbour, Goal: "slow the pool's elections without a certificate",
			Sent:     "4,000 GET /healthz over 32 connections",
			Expected: "no change of the leader, each asks etcd at most once a second",
			Control:  "the leader's term is that of before", play: manyHealthz,
		},
		{
			Number: "48", Position: Foreigner, Goal: "read or write another pool",
			Sent: "every path, with a hub's certificate of another pool, by its own authority and by one that both " +
				"share",
			Expected: "401 or 403", Control: "a hub of the pool reads",
			asks: append(
				all(coordinatorPaths(), "foreigner", 400, 401, 403, 404, 405),
				all(coordinatorPaths(), "shared foreigner", 400, 401, 403, 404, 405)...,
			),
			controls: []ask{member},
		},
		{
			Number: "53", Position: Member, Goal: "speak for another node",
			Sent: "PUT, PATCH, DELETE of its Lease in the pool, POST with its name in the body, generateName, " +
				"deletecollection, subresources, other namespaces",
			Expected: "403",
			Control:  "its own Lease", asks: othersLease(), controls: []ask{{
				as: "member", at: coordinatorDoor, method: http.MethodPatch,
				path:   nodeLeases + "/{node}?fieldManager=attack&force=true",
				header: []string{"Content-Type: application/apply-patch+yaml"},
				body: `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"{node}",` +
					`"namespace":"kube-node-lease"},"spec":{"holderIdentity":"{node}","leaseDurationSeconds":40}}`,
				codes: []int{200, 201, 403},
			}, member},
		},
		{
			Number: "61", Position: Member, Goal: "use a path that is for others",
			Sent:     "PUT of the keys as no leader, rejoin as a hub, writes as a viewer, impersonation",
			Expected: "403 or 409", Control: "a hub and a viewer read", play: othersPaths,
			controls: []ask{member, {as: "viewer", at: coordinatorDoor, path: slices1, codes: ok}},
		},
	}
	for i := range shared {
		shared[i].place = here
	}
	return append(shared,
		Attack{
			Number: "49", Position: Foreigner, Goal: "write the pool's elections by its etcd",
			Sent: "a replica's certificate of another pool, by an authority that both share, at the port of etcd's " +
				"peers, under every name",
			Expected: "refused",
			Control:  "a replica's own certificate is taken",
			place:    &place{name: "trio", mode: runtime.Weir, nodes: 1, coordinators: 3, replicas: 3, flags: swift()},
			play:     foreignReplica,
		},
		Attack{
			Number: "54", Position: Member, Goal: "feed the pool without being its leader",
			Sent:     "an address where it shows forged slices, in its node's Lease, and in the election Lease in all names",
			Expected: "400, 403 or 409, and nobody reads there",
			Control:  "the leader is still read, under the same term", place: led("54"), play: falseTerms,
		},
		Attack{
			Number: "50", Position: Member, Goal: "the pool elects nobody any more",
			Sent: "the election Lease for a holder that does not exist and 68 years, by PUT, PATCH and apply, also " +
				"after DELETE",
			Expected: "403 or 422, and the leader renews on",
			Control:  "the leader renews its Lease", place: led("50"), play: electNobody,
		},
		Attack{
			Number: "51", Position: Member, Goal: "what the pool holds counts as fresh for ever",
			Sent:     "leader-informer-sync for 68 years, and with renewTime in the year 9999",
			Expected: "403, and the leader renews on", Control: "the leader renews it",
			place: led("51"), play: freshForEver,
		},
		Attack{
			Number: "52", Position: Member,
			Goal:     "take the election from a leader that lives, or keep it from settling",
			Sent:     "PUT with an own identity, DELETE ten times, deletecollection, finalizers, owners",
			Expected: "403 or 409, the same leader, one term",
			Control:  "the leader renews its Lease", place: led("52"), play: usurp,
		},
	)
}
