package attack

import (
	"fmt"
	"net/http"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/runtime"
)

// poolWriteAttacks are attempts of a member to stop its pool by what it may write there: its own Lease above all.
func poolWriteAttacks() []Attack {
	berth := &place{
		name: "berth", mode: runtime.Weir, nodes: 3, hubs: []int{1, 2}, coordinators: 1, manager: true, flags: swift(),
	}
	refusedAtOnce := []int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge}
	line := "POST " + contract.LinePath + " HTTP/1.1\r\nHost: weir\r\nConnection: Upgrade\r\nUpgrade: weir-line\r\n\r\n"
	directory := ask{
		at: coordinatorDoor, method: http.MethodPost, path: contract.DirectoryPath,
		body:  `{"pool":"{pool}","mode":"leader-hubs","leaders":["{node 2}=127.0.0.1:1"]}`,
		codes: append([]int{http.StatusNotFound}, refusedWrite...),
	}
	member := ask{as: "member", at: coordinatorDoor, path: slices1, codes: ok}
	return []Attack{
		{
			Number: "95", Position: Member, Goal: "no node that is cut off is spoken for any more",
			Sent: "PUT, PATCH and apply of its own Lease, marked as cut off, with a holder of 1.1 MB; owners, labels, " +
				"annotations and managers of some KB",
			Expected: "403, 413 or 422, and a node that is cut off afterwards is still forwarded",
			Control:  "its own Lease, marked as cut off, as a hub writes it", place: berth, play: hugeLease,
		},
		{
			Number: "96", Position: Member, Goal: "the pool elects nobody: its etcd is full",
			Sent:     "400 changes of its own Lease, 1.4 MB each",
			Expected: "413 or 429, and the election Lease can be made",
			Control:  "another node makes and renews its own",
			place:    &place{name: "brim", mode: runtime.Weir, nodes: 2, coordinators: 1, flags: swift()}, play: fullStore,
		},
		{
			Number: "97", Position: Member, Goal: "the coordinator connects to what only its machine reaches",
			Sent: "link-local, multicast and unspecified addresses, also as IPv6 and as IPv4 in IPv6, as the address of its " +
				"relays, in its own Lease",
			Expected: "403 or 422", Control: "an address of a node", place: berth, play: innerAddresses(refusedAtOnce),
		},
		{
			Number: "98", Position: Member, Goal: "be read as the hub of another node, by a line of its own",
			Sent: "the election Lease in the name of the leader with the address reverse, while an own line waits; a line " +
				"with a certificate that has ended, or of another pool",
			Expected: "401, 403 or 409, the leader is read on",
			Control:  "a line of its own", place: led("98"), play: foreignLine(line),
		},
		{
			Number: "99", Position: Member, Goal: "speak for another node at a leader hub",
			Sent:     "GET, PUT, POST of its Lease there, and its name in the body",
			Expected: "400, 403, or 503 that it does not show that", Control: "its own Lease",
			place: &place{name: "duo", mode: runtime.LeaderHubs, nodes: 2, hubs: []int{1}, flags: swift()},
			play:  othersAtLeaderHub,
		},
		{
			Number: "100", Position: Member, Goal: "tell the pool where it is led",
			Sent:     "POST and PUT of an entry of the directory that nobody signed, as a hub and as a viewer",
			Expected: "400, 403 or 405", Control: "a hub reads it",
			asks: []ask{as("member 2", directory), as("viewer", directory), as("member 2", by(http.MethodPut, directory))},
			controls: []ask{
				{as: "member 2", at: coordinatorDoor, path: contract.DirectoryPath, codes: append([]int{404, 204}, ok...)}, member,
			},
			place: harbour(),
		},
		{
			Number: "101", Position: Member, Goal: "wear the disk of the coordinator out, and keep it from other writes",
			Sent:     "2,000 changes of its own Lease, as large as may be, 120 at a time",
			Expected: "429 with Retry-After for all beyond 60 at once and 20 a second, and the leader keeps its Lease",
			Control:  "others write at once, and it does after the time that it is told", place: berth, play: manyWrites,
		},
	}
}

// as gives an ask to somebody.
func as(who string, q ask) ask { q.as = who; return q }

// by asks with another method.
func by(method string, q ask) ask { q.method = method; return q }

// ownLease is a Lease of a node as a hub writes it at the coordinator. meta and spec are further fields, as JSON with a
// comma at the end.
func ownLease(node, meta, spec string) string {
	return fmt.Sprintf(
		`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{%s"name":%q,"namespace":%q},`+
			`"spec":{%s"leaseDurationSeconds":40,"renewTime":"{now}"}}`,
		meta, node, contract.NodeLeaseNamespace, spec,
	)
}
