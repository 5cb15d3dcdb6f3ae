package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-edge/weir/sim/runtime"
)

// What is asked for again and again.
const (
	slices1   = "/apis/discovery.k8s.io/v1/endpointslices"
	slicesOfA = "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices"
	plainMap  = "/api/v1/namespaces/a/configmaps/plain"
	plainMaps = "/api/v1/namespaces/a/configmaps"
	hidden    = "10.66.0.1" // in the Endpoints of namespace b
)

// Answers that refuse.
var (
	// 503: a busy cloud, nothing is shown.
	nobody    = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable}
	unknown   = []int{http.StatusUnauthorized, http.StatusServiceUnavailable}
	ok        = []int{http.StatusOK}
	malformed = []int{
		0, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusRequestURITooLong, http.StatusNotImplemented,
	}
)

// harbour is the pool of attacks that break nothing.
func harbour() *place {
	return &place{name: "harbour", mode: runtime.Weir, nodes: 2, hubs: []int{1, 2}, coordinators: 1, flags: swift()}
}

// long is a label selector of as many bytes.
func long(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "!a%d", i)
	}
	return b.String()
}

func identityAttacks() []Attack {
	here := harbour()
	readerReads := ask{as: "reader", path: plainMap, codes: ok, has: "hello"}
	readerWatchesHere := ask{as: "reader", path: slicesOfA + "?watch=1", codes: ok, has: "shop-1"}
	readerWatches := ask{as: "reader", path: slices1 + "?watch=1", codes: ok, has: "shop-1"}
	all := []Attack{
		{
			Number: "1", Position: Pod, Goal: "read Secrets without credentials",
			Sent:     "GET secrets, of a namespace and of all, over HTTP/1.1 and /2, TLS and plain",
			Expected: "401 or 403 of the cloud", Control: "a token that may read gets a ConfigMap",
			asks: []ask{
				{path: "/api/v1/namespaces/a/secrets", codes: nobody},
				{path: "/api/v1/secrets", codes: nobody, h1: true},
				{path: "/api/v1/namespaces/a/secrets/canary", codes: nobody, at: plainDoor, h1: true},
				{path: "/api/v1/namespaces/a/secrets?watch=1", codes: nobody},
			},
			controls: []ask{readerReads},
		},
		{
			Number: "2", Position: Pod, Goal: "be who a header says",
			Sent: "X-Remote-User: admin, X-Remote-Group: system:masters, in several spellings", Expected: "401 or 403",
			Control: "a token that may read gets a ConfigMap",
			asks: []ask{
				{
					path: "/api/v1/secrets", header: []string{"X-Remote-User: admin", "X-Remote-Group: system:masters"},
					codes: nobody,
				},
				{
					path:   slices1,
					header: []string{"X-Remote-User: admin", "X-Remote-Group: system:masters", "X-Remote-Uid: 0"},
					codes:  nobody,
				},
				{
					wire: "GET /api/v1/secrets HTTP/1.1\r\nHost: hub\r\nx-remote-user: admin\r\nX_Remote_User: " +
						"admin\r\nx-REMOTE-group: system:masters\r\n\r\n",
					codes: nobody,
				},
				{
					wire: "GET /api/v1/secrets HTTP/1.1\r\nHost: hub\r\nX-Remote-User : admin\r\nX-Remote-Group: " +
						"system:masters\r\n\r\n",
					codes: malformed,
				},
				{
					path: "/api/v1/secrets", at: plainDoor, h1: true,
					header: []string{"X-Remote-User: admin", "X-Remote-Group: system:masters"}, codes: nobody,
				},
			},
			controls: []ask{readerReads},
		},
		{
			Number: "3", Position: Pod, Goal: "act in the name of somebody else",
			Sent:     "a token without rights with Impersonate-User: system:admin, and groups, and afterwards without them",
			Expected: "403, and 403 afterwards", Control: "a token that may read gets slices",
			asks: []ask{
				{as: "other", path: slices1, header: []string{"Impersonate-User: system:admin"}, codes: nobody},
				{
					as: "other", path: slices1,
					header: []string{"impersonate-user: system:admin", "Impersonate-Group: system:masters"},
					codes:  nobody,
				},
				{
					as: "other", path: slices1, header: []string{"Impersonate-Group: system:masters"},
					codes: append([]int{http.StatusBadRequest, http.StatusInternalServerError, http.StatusServiceUnavailable},
						nobody...),
				},
				{
					as: "other", path: "/api/v1/secrets",
					header: []string{"Impersonate-User: system:node:{node}", "Impersonate-Group: system:nodes"},
					codes:  nobody,
				},
				{as: "other", path: slices1, codes: nobody},
				{
					path: slices1, header: []string{"Impersonate-User: system:serviceaccount:a:reader"},
					codes: nobody,
				},
			},
			controls: []ask{{as: "reader", path: slices1, codes: ok}},
		},
		{
			Number: "4", Position: Member, Goal: "be a node at the hub of another node",
			Sent: "the kubelet's certificate of node 2 at the hub of node 1", Expected: "401",
			Control: "it is taken at the hub of node 2, and node 1's at its own",
			asks: []ask{
				{as: "kubelet 2", path: "/api/v1/nodes", codes: nobody},
				{as: "kubelet 2", path: "/api/v1/nodes/{node}", codes: nobody, h1: true},
				{as: "member 2", path: "/api/v1/nodes/{node}", codes: nobody},
			},
			controls: []ask{
				{as: "kubelet", path: "/api/v1/nodes/{node}", codes: ok},
				{as: "kubelet 2", at: secondHub, path: "/api/v1/nodes/{node 2}", codes: ok},
			},
		},
		{
			Number: "5", Position: Member, Goal: "be the node by a certificate that does not say so",
			Sent: "CN=system:node:node-1 without O=system:nodes; for servers only; signed by itself; by the pool's " +
				"authority; expired; in capitals",
			Expected: "401", Control: "the kubelet's own certificate is taken",
			prepare: falseCertificates,
			asks: []ask{
				{as: "no group", path: "/api/v1/nodes/{node}", codes: nobody},
				{as: "for servers", path: "/api/v1/nodes/{node}", codes: nobody},
				{as: "self-signed", path: "/api/v1/nodes/{node}", codes: nobody},
				{as: "of the pool", path: "/api/v1/nodes/{node}", codes: nobody},
				{
					as: "expired", path: "/api/v1/nodes/{node}",
					codes: append([]int{http.StatusServiceUnavailable}, nobody...),
				},
				{as: "capitals", path: "/api/v1/nodes/{node}", codes: nobody},
			},
			controls: []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", codes: ok}},
		},
		{
			Number: "6", Position: Pod, Goal: "have a token of somebody else served as the node",
			Sent:     "the kubelet's certificate and beside it a token without rights",
			Expected: "403, judged by the token",
			Control:  "the certificate alone reads its Node",
			prepare: func(_ context.Context, x *scene) error {
				kubelet, err := x.who("kubelet")
				if err != nil {
					return err
				}
				other, err := x.who("other")
				x.let("both", actor{cert: kubelet.cert, token: other.token})
				x.let("forged beside", actor{cert: kubelet.cert, token: "nonsense"})
				return err
			},
			asks: []ask{
				{as: "both", path: "/api/v1/pods", codes: nobody}, {
					as: "both", path: "/api/v1/nodes/{node}", codes: nobody, h1: true,
				},
				{as: "forged beside", path: "/api/v1/nodes/{node}", codes: nobody},
				{
					as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{"Authorization: Basic YTpi"},
					codes: nobody,
				},
			},
			controls: []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", codes: ok}},
		},
		{
			Number: "7", Position: Pod,
			Goal:     "have a verdict filed for nobody by a token that the cloud does not look at",
			Sent:     "a good token in Sec-WebSocket-Protocol without an upgrade; then nobody asks the same",
			Expected: "401 or 403, both times", Control: "the token in Authorization watches", play: hiddenToken,
			controls: []ask{readerWatches},
		},
		{
			Number: "8", Position: Pod, Goal: "be the node at the plain port",
			Sent: "all that a node could show, at the plain port", Expected: "401 or 403",
			Control: "a token is served there",
			asks: []ask{
				{at: plainDoor, h1: true, path: "/api/v1/nodes/{node}", codes: nobody},
				{
					at: plainDoor, h1: true, path: "/api/v1/nodes/{node}",
					header: []string{"X-Remote-User: system:node:{node}", "X-Remote-Group: system:nodes"},
					codes:  nobody,
				},
				{
					at: plainDoor, h1: true, path: "/api/v1/nodes/{node}",
					header: []string{
						"X-Forwarded-Client-Cert: Subject=\"CN=system:node:{node},O=system:nodes\"",
						"X-SSL-Client-Verify: SUCCESS",
					},
					codes: nobody,
				},
				{
					at: plainDoor, h1: true,
					path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}", codes: nobody,
				},
			},
			controls: []ask{{as: "reader", at: plainDoor, h1: true, path: slices1, codes: ok, has: "shop-1"}},
		},
		{
			Number: "14", Position: Holder, Goal: "read on with an expired token while the cloud is there",
			Sent: "slices?watch=1 with selectors of 700 kB and 400 kB, which cannot be sent on", Expected: "401 or 400",
			Control: "a token that counts watches", before: []ask{readerWatchesHere}, prepare: expiredHere,
			asks: []ask{
				{
					as: "expired", path: slicesOfA + "?watch=1&labelSelector=" + long(700_000),
					codes: append([]int{http.StatusServiceUnavailable}, malformed...),
				},
				{
					as: "expired", path: slicesOfA + "?watch=1&labelSelector=" + long(700_000),
					codes: append([]int{http.StatusServiceUnavailable}, malformed...), h1: true,
				},
				{
					as: "expired", path: slicesOfA + "?watch=1&labelSelector=" + long(400_000),
					codes: append([]int{http.StatusServiceUnavailable}, malformed...),
				},
				{
					as: "expired", path: slicesOfA + "?labelSelector=" + long(700_000),
					codes: append([]int{http.StatusServiceUnavailable}, malformed...),
				},
			},
			controls: []ask{readerWatches},
		},
		{
			Number: "15", Position: Holder,
			Goal:     "read on when the right was taken away, by a cloud that is too busy to say so",
			Sent:     "own flow at 429, then slices?watch=1&labelSelector=x!=1",
			Expected: "403, 429 or 503", Control: "another token watches", play: jailed, controls: []ask{readerWatches},
		},
		{
			Number: "21", Position: Pod, Goal: "see more than the namespace that is allowed",
			Sent:     "all namespaces, another one, a subresource, Table and metadata, fieldSelector=metadata.namespace",
			Expected: "403, or only what is allowed",
			Control:  "Endpoints of the namespace that is allowed",
			asks: []ask{
				{as: "narrow", path: "/api/v1/endpoints?watch=1", codes: nobody},
				{as: "narrow", path: "/api/v1/endpoints", codes: nobody},
				{as: "narrow", path: "/api/v1/namespaces/b/endpoints", codes: nobody},
				{as: "narrow", path: "/api/v1/namespaces/b/endpoints/hidden", codes: nobody},
				{
					as: "narrow", path: "/api/v1/namespaces/a/endpoints/shop/status",
					codes: append([]int{http.StatusNotFound}, nobody...),
				},
				{
					as: "narrow", path: "/api/v1/endpoints",
					header: []string{"Accept: application/json;as=Table;v=v1;g=meta.k8s.io"}, codes: nobody,
				},
				{
					as: "narrow", path: "/api/v1/endpoints",
					header: []string{"Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
					codes:  nobody,
				},
				{
					as: "narrow", path: "/api/v1/namespaces/a/endpoints?fieldSelector=metadata.namespace=b",
					codes: []int{200, 400, 403}, lacks: hidden,
				},
				{
					as: "narrow", path: "/api/v1/namespaces/a/endpoints?namespace=b", codes: []int{200, 400, 403},
					lacks: hidden,
				},
				{as: "narrow", path: "/api/v1/watch/endpoints", codes: []int{400, 401, 403, 404}},
				{as: "narrow", path: "/api/v1/watch/namespaces/b/endpoints", codes: []int{400, 401, 403, 404}},
			},
			controls: []ask{
				{as: "narrow", path: "/api/v1/namespaces/a/endpoints", codes: ok, has: "10.1.0.1", lacks: hidden},
			},
		},
		{
			Number: "22", Position: Pod, Goal: "see more than the name that is allowed",
			Sent: "the same list without fieldSelector, with another, with two", Expected: "403",
			Control: "fieldSelector=metadata.name=shop",
			asks: []ask{
				{as: "named", path: "/api/v1/namespaces/a/endpoints", codes: nobody},
				{as: "named", path: "/api/v1/namespaces/a/endpoints?fieldSelector=metadata.name!=shop", codes: nobody},
				{
					as: "named", path: "/api/v1/namespaces/a/endpoints?fieldSelector=&fieldSelector=metadata.name=shop",
					codes: nobody,
				},
				{
					as: "named", path: "/api/v1/namespaces/a/endpoints?watch=1&fieldSelector=metadata.name=other",
					codes: nobody,
				},
				{as: "named", path: "/api/v1/namespaces/a/endpoints?FieldSelector=metadata.name=shop", codes: nobody},
				{as: "named", path: "/api/v1/namespaces/b/endpoints?fieldSelector=metadata.name=shop", codes: nobody},
			},
			controls: []ask{
				{
					as: "named", path: "/api/v1/namespaces/a/endpoints?fieldSelector=metadata.name=shop", codes: ok,
					has: "10.1.0.1",
				},
			},
		},
		{
			Number: "23", Position: Pod, Goal: "have a watch judged as a list, or a list as a watch",
			Sent: "?watch=0&watch=1, ?watch=, ?watch=FALSE, ?watch=true;x and more, as who may only list and as " +
				"who may only watch",
			Expected: "nothing that kube-apiserver refuses", Control: "the lister lists, the watcher watches",
			play: spellings(spelledVerbs(), "lister", "watcher"),
			controls: []ask{
				{as: "lister", path: "/api/v1/namespaces/a/endpoints", codes: ok, has: "10.1.0.1"},
				{as: "watcher", path: "/api/v1/namespaces/a/endpoints?watch=1", codes: ok, has: "10.1.0.1"},
			},
		},
		{
			Number: "24", Position: Pod, Goal: "have a path judged as another one",
			Sent:     "//api, a/../b, a%2f..%2fb, trailing slashes, capitals, an opaque request line",
			Expected: "nothing that kube-apiserver refuses",
			Control:  "the path as it should be", play: spellings(spelledPaths(), "narrow"),
			controls: []ask{{as: "narrow", path: "/api/v1/namespaces/a/endpoints", codes: ok, has: "10.1.0.1"}},
		},
		{
			Number: "25", Position: Pod, Goal: "leave the hub's checks by another protocol on the same connection",
			Sent:     "Upgrade: h2c with HTTP2-Settings on a relayed path and on a proxied one, TLS and plain",
			Expected: "no 101",
			Control:  "the same without the upgrade",
			asks: []ask{
				{wire: upgrade(slices1), codes: nobody}, {
					at: plainDoor, wire: upgrade(slices1), codes: nobody,
				},
				{
					at: plainDoor, wire: upgrade("/api/v1/secrets"),
					codes: append([]int{http.StatusBadRequest}, nobody...),
				},
				{at: plainDoor, wire: upgrade("/version"), codes: []int{200, 400, 401, 403}},
				{at: plainDoor, wire: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", codes: malformed},
			},
			controls: []ask{{as: "reader", h1: true, path: slices1, codes: ok, has: "shop-1"}},
		},
		{
			Number: "26", Position: Pod, Goal: "hide a request in another one's body, to be answered as who comes next",
			Sent:     "Content-Length with Transfer-Encoding, two lengths, xchunked, a bare chunk",
			Expected: "400, and who comes next is answered as himself",
			Control:  "the next ten requests of others", play: smuggle,
		},
		{
			Number: "27", Position: Pod, Goal: "appear in the cloud's audit log as another machine",
			Sent:     "X-Real-Ip, X-Forwarded-For, Forwarded, True-Client-Ip: 6.6.6.6",
			Expected: "not among the source addresses",
			Control:  "the request is in the audit log", play: falseSource,
		},
	}
	for i := range all {
		all[i].place = here
	}
	return all
}
