package attack

import (
	"net/http"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// everyMap is a resource that the gate relays, and that the scope of the pool does not name.
const everyMap = "/api/v1/configmaps"

// barred are answers of weir-gate that show nothing.
var barred = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusMethodNotAllowed,
}

// gated is the pool whose leader reads at weir-gate, and keeps a connection to it.
func gated() *place {
	return &place{
		name: "gated", mode: runtime.Weir, nodes: 2, hubs: []int{1}, coordinators: 1, gate: true, flags: swift(),
	}
}

// gateFlags have the gate relay more than hubs may read.
func gateFlags() parts.Flags {
	return parts.Flags{"way-in": true, "pool-scope-resources": append(directory.DefaultScope(), "configmaps.v1.")}
}

// beyondScope asks the gate in all forms for what its caller may not read.
func beyondScope() (asks []ask) {
	const initial = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	differences := []string{"Accept: " + wire.DeltaMedia + ";stream=watch, application/json"}
	for _, path := range []string{
		everyMap, plainMaps, plainMap, "/api/v1/secrets", secret, secret1, "/api/v1/pods", nodeLeases, poolLeases,
	} {
		asks = append(asks,
			ask{path: path}, ask{path: watchOf(path)}, ask{path: path, header: []string{"Impersonate-User: system:admin"}},
			ask{path: path, header: []string{"X-Remote-User: system:admin", "X-Remote-Group: system:masters"}},
			ask{path: path, h1: true, header: []string{"Connection: Impersonate-User", "Impersonate-User: system:admin"}})
		if path != secret1 {
			asks = append(asks, ask{path: path + "?watch=1"}, ask{path: path + initial},
				ask{path: path + "?watch=1&resourceVersion=1", header: differences},
				ask{path: path + initial, header: differences})
		}
	}
	for _, path := range []string{
		"/api/v1/endpoints/../configmaps", "//api/v1/configmaps", "/api/v1//configmaps", "/API/v1/configmaps",
		"/api/v1/endpoints%2f..%2fconfigmaps", "/apis/v1/configmaps",
	} {
		asks = append(asks, ask{path: path})
	}
	for i := range asks {
		asks[i].as = "hub"
		if i%7 == 3 {
			asks[i].as = "kubelet"
		}
	}
	return append(asks, ask{as: "kubelet", path: slices1}, ask{path: slices1}, ask{path: "/metrics"},
		ask{as: "other", path: slices1}, ask{as: "reader", path: everyMap}, ask{as: "member", path: slices1},
		ask{as: "foreign hub", path: everyMap}, ask{as: "administrator", path: "/api/v1/secrets"},
		ask{as: "hub", path: slicesOfA, method: http.MethodPost, body: "{}"},
		ask{as: "hub", path: slicesOfA + "/shop-1", method: http.MethodDelete})
}

func gateAttacks() []Attack {
	here := gated()
	atGate := func(asks ...ask) []ask {
		for i := range asks {
			asks[i].at = gateDoor
			if asks[i].codes == nil {
				asks[i].codes, asks[i].lacks = barred, "10.1.0.1"
			}
		}
		return asks
	}
	all := []Attack{
		{
			Number: "160", Position: Member, Goal: "read at weir-gate what the scope of the pool does not name",
			Sent: "as a hub, kubelet, pod and nobody: ConfigMaps, which the gate relays for others, Secrets, pods and Leases, " +
				"as list, get, watch and differences, with names of others in headers, and by paths that lead elsewhere",
			Expected: "400, 401, 403, 404 or 405, and no object",
			Control:  "the hub gets slices, whole and as differences; the hub that may gets the ConfigMaps",
			asks:     atGate(beyondScope()...), controls: atGate(
				ask{as: "hub", path: slices1, codes: ok, has: "shop-1"},
				ask{
					as: "hub", path: slices1 + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&" +
						"allowWatchBookmarks=true", codes: ok,
					header: []string{"Accept: " + wire.DeltaMedia + ";stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
				},
				ask{as: "hub 2", path: everyMap, codes: ok, has: "hello"},
			),
		},
		{
			Number: "161", Position: Foreigner, Goal: "lead another pool at weir-gate",
			Sent: "POST " + contract.ReversePath + " as a hub that names another pool in headers, query and path, and keeps " +
				"the connection; as a kubelet and another user that may call there, as a pod, as nobody",
			Expected: "403 for callers that are no hub; no connection to a node of the other pool comes over the hub's",
			Control:  "the leader of the other pool dials there, and the hub is asked for a node of its own pool",
			play:     leadsAnother,
		},
		{
			Number: "162", Position: Foreigner, Goal: "draw connections of the cloud into the own pool",
			Sent: "a Node that says that it has the addresses and names of a node of another pool, of a node of the cloud, of " +
				"kube-apiserver and of a Service, while its hub leads; CONNECT to each",
			Expected: "none of these connections comes over the hub's",
			Control:  "what nobody else has comes over it; by its name the node of the other pool is dialed by its leader",
			play:     drawsConnections,
		},
		{
			Number: "163", Position: Member, Goal: "reach anything by CONNECT at weir-gate, with what a node has",
			Sent: "CONNECT as hubs and kubelets of both pools, pod, nobody, and with the name of another user in headers, to " +
				"nodes, metadata, kube-apiserver, the gate, its machine",
			Expected: "401 or 403, and nothing is dialed", Control: "who may is taken to the same node by the leader",
			play: connectsFromEdge,
		},
		{
			Number: "164", Position: Holder, Goal: "leave what pools may be asked for, with a certificate of Prometheus",
			Sent: "CONNECT to metadata, loopback in all its forms, the gate, kube-apiserver, a Service, names; to other ports " +
				"of nodes; to a node whose Node says 127.0.0.1 or 169.254.169.254",
			Expected: "403, and nothing is dialed", Control: "the kubelet's port of the same node is dialed",
			play: connectsAs("prometheus"),
		},
		{
			Number: "164b", Position: Holder, Goal: "reach metadata or the gate with the certificate of kube-apiserver",
			Sent:     "the same, and GET by an absolute URL, by a user that may reach all that the gate reaches",
			Expected: "400 or 403, and nothing is dialed", Control: "the kubelet's port of the same node is dialed",
			play: connectsAs("egress"),
		},
		{
			Number: "166", Position: Foreigner, Goal: "take weir-gate from other pools, or its memory",
			Sent: "400 streams with 900 kB of headers each; 60 upgrades that stay silent; 12 connections of a leader; over " +
				"one 64 MB of frames of an unknown type, of data that nobody asked for, and of a header without end",
			Expected: "at most four silent ones at once, and four others; RssAnon grows by less than 96 MB, at most 100 lines",
			Control:  "meanwhile another pool is reached", play: hostileHub,
		},
	}
	for i := range all {
		all[i].place = here
		if all[i].prepare == nil {
			all[i].prepare = gateFolk
		}
	}
	return append(all, Attack{
		Number: "165", Position: Gatekeeper, Goal: "fill the memory of a hub with what a gate says, or stop its clients",
		Sent: "watches of differences that inflate to 4 GiB, that say they have 2^60 bytes, that have 32 MiB of garbage, " +
			"of events of no content, of bookmarks of 4 MiB, and without end of nothing",
		Expected: "RssAnon grows by less than 96 MB, each read of the hub's clients is answered, the log grows by less " +
			"than 1 MB",
		Control: "a client's watch goes on, and shows a change", place: &place{
			name: "bombed", mode: runtime.Weir, nodes: 1, coordinators: 1, falseGate: true, flags: swift(),
		},
		play: frameBombs,
	})
}
