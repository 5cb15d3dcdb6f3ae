package attack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-edge/weir/sim/runtime"
)

// dry is a hub whose attacks come while the cloud is away, and break nothing.
func dry() *place {
	return &place{name: "dry", mode: runtime.HubOnly, nodes: 1, hubs: []int{1}, flags: swift()}
}

// secret64 is the beginning of the canary as JSON shows it.
var secret64 = base64.StdEncoding.EncodeToString([]byte(canary))[:16]

const kubeletAgent = "User-Agent: kubelet/v1.37.1"

// tricks are headers by which a proxy may be brought to send a request on without its token.
func tricks() [][]string {
	return [][]string{
		{"Connection: Authorization"}, {"Connection: authorization"}, {"Connection: close, AUTHORIZATION"},
		{"Connection: keep-alive,Authorization,"}, {
			"Connection: Upgrade, Authorization", "Upgrade: websocket",
		},
		{"Connection:\tAuthorization"}, {"Connection: keep-alive", "Connection: Authorization"},
		{"Connection: \"Authorization\""}, {"Connection: X,\tAuthorization"}, {"Proxy-Connection: Authorization"}, {
			"TE: trailers", "Trailer: Authorization",
		},
		{"Connection: te", "TE: Authorization"},
	}
}

// withTrick is a request on the wire that names its token among the headers that are not sent on.
func withTrick(path, token string, trick []string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer " + token + "\r\n" +
		strings.Join(trick, "\r\n") + "\r\n\r\n"
}

func awayAttacks() []Attack {
	here := dry()
	reads := ask{as: "reader", path: plainMap, codes: ok, has: "hello"}
	all := []Attack{
		{
			Number: "9", Position: Pod, Goal: "have an invented token served while the cloud is away",
			Sent: "GET /version with the token and Connection: Authorization, in twelve spellings, at both ports; " +
				"later /version with the token",
			Expected: "401 or 503", Control: "a token that the cloud took reads /version",
			prepare: func(ctx context.Context, x *scene) error {
				return x.trickAll(ctx, func(i int) (string, error) { return fmt.Sprintf("forged-%d", i), nil })
			},
			before: []ask{{as: "reader", path: "/version", codes: ok}},
			play: func(ctx context.Context, x *scene) error {
				return x.tricked(ctx, "/version")
			},
			controls: []ask{{as: "reader", path: "/version", codes: ok, has: "gitVersion"}},
		},
		{
			Number: "10", Position: Holder, Goal: "have a revoked token served again",
			Sent: "the token, which the cloud refuses, then as in 9; while the cloud is away what it was allowed " +
				"to read",
			Expected: "401",
			Control:  "a token that was not revoked reads the same", before: []ask{reads}, prepare: revoked,
			play: func(ctx context.Context, x *scene) error {
				x.try(ctx, ask{as: "revoked", path: plainMap, codes: unknown})
				x.try(ctx, ask{as: "revoked", path: slices1, codes: unknown})
				return nil
			},
			controls: []ask{reads},
		},
		{
			Number: "16", Position: Holder, Goal: "be served by a token that expired long ago",
			Sent: "a pod's token that expired 25 hours ago, with the cloud's signature", Expected: "401",
			Control: "one that expired an hour ago is served, as --offline-token-allowance says", before: []ask{reads},
			prepare: longExpired,
			asks: []ask{
				{as: "long expired", path: plainMap, codes: []int{401}},
				{as: "long expired", path: slices1, codes: []int{401}},
			},
			controls: []ask{{as: "just expired", path: plainMap, codes: ok, has: "hello"}},
		},
		{
			Number: "17", Position: Holder, Goal: "use the token of a pod of another node",
			Sent: "a token that is bound to a pod of another node", Expected: "401",
			Control: "the token of a pod of this node",
			before:  []ask{reads}, prepare: elsewhere,
			asks: []ask{
				{as: "elsewhere", path: plainMap, codes: unknown},
				{as: "elsewhere", path: slices1 + "?watch=1", codes: unknown},
			},
			controls: []ask{{as: "here", path: plainMap, codes: ok}},
		},
		{
			Number: "18", Position: Holder, Goal: "use a token that is meant for somebody else",
			Sent: "a token for the audience vault", Expected: "401", Control: "the same pod's token for the API",
			before: []ask{reads},
			prepare: func(ctx context.Context, x *scene) error {
				token, err := x.ofPod(ctx, "vault", "vault")
				x.let("vault", actor{token: token})
				return err
			},
			asks:     []ask{{as: "vault", path: plainMap, codes: unknown}, {as: "vault", path: slices1, codes: unknown}},
			controls: []ask{reads},
		},
		{
			Number: "19", Position: Holder, Goal: "forge a token",
			Sent: "alg none, HS256 with the public key, a jwk header, kid ../../x, another signature, two " +
				"Authorization headers, 17 kB",
			Expected: "401 or 503",
			Control:  "the token that they are made of", before: []ask{reads}, play: forgeries, controls: []ask{reads},
		},
		{
			Number: "20", Position: Holder, Goal: "use the token of a pod that was replaced",
			Sent: "a token of a pod that was deleted and made again with the same name", Expected: "401",
			Control: "the new pod's token",
			before:  []ask{reads}, prepare: replaced, asks: []ask{{as: "replaced", path: plainMap, codes: unknown}},
			controls: []ask{{as: "replacement", path: plainMap, codes: ok}},
		},
		{
			Number: "28", Position: Pod, Goal: "read a Secret that the kubelet has read",
			Sent:     "GET of it with a token that may not, also as metadata, as a list of one, and at the plain port",
			Expected: "503 or 403, and not the Secret",
			Control:  "the kubelet reads it", before: []ask{reads}, prepare: mounted,
			asks: []ask{
				{as: "reader", path: "/api/v1/namespaces/a/secrets/canary", codes: nobody, lacks: secret64},
				{
					as: "reader", path: "/api/v1/namespaces/a/secrets/canary", header: []string{kubeletAgent},
					codes: nobody, lacks: secret64,
				},
				{
					as: "reader", path: "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name=canary",
					codes: nobody, lacks: secret64,
				},
				{
					as: "reader", path: "/api/v1/namespaces/a/secrets/canary",
					header: []string{"Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
					codes:  nobody,
				},
				{
					as: "reader", at: plainDoor, h1: true, path: "/api/v1/namespaces/a/secrets/canary",
					codes: nobody, lacks: secret64,
				},
				{path: "/api/v1/namespaces/a/secrets/canary", codes: nobody, lacks: secret64},
				{
					as: "reader", path: "/api/v1/namespaces/a/secrets/canary",
					header: []string{"Impersonate-User: system:node:{node}", "Impersonate-Group: system:nodes"},
					codes:  nobody, lacks: secret64,
				},
			},
			controls: []ask{
				{
					as: "kubelet", path: "/api/v1/namespaces/a/secrets/canary", header: []string{kubeletAgent},
					codes: ok, has: secret64,
				},
			},
		},
		{
			Number: "29", Position: Pod, Goal: "list more Secrets than were allowed",
			Sent: "all namespaces and another one, after one namespace was listed", Expected: "503 or 403",
			Control: "the namespace that was listed",
			prepare: grant("keeper", "list", "watch"),
			before:  []ask{{as: "keeper", path: "/api/v1/namespaces/a/secrets", codes: ok}},
			asks: []ask{
				{as: "keeper", path: "/api/v1/secrets", codes: nobody}, {
					as: "keeper", path: "/api/v1/namespaces/b/secrets", codes: nobody,
				},
				{as: "keeper", path: "/api/v1/secrets?fieldSelector=metadata.namespace=a", codes: nobody}, {
					as: "keeper", path: "/api/v1/namespaces/b/secrets/canary", codes: nobody,
				},
			},
			controls: []ask{{as: "keeper", path: "/api/v1/namespaces/a/secrets", codes: ok, has: secret64}},
		},
		{
			Number: "30", Position: Pod, Goal: "read on by an old permission what was forbidden later",
			Sent: "list and watch are allowed; then list is forbidden; get of a member", Expected: "403",
			Control: "who is still allowed gets it",
			prepare: fickle,
			asks: []ask{
				{as: "fickle", path: "/api/v1/namespaces/a/secrets/canary", codes: nobody, lacks: secret64},
				{as: "fickle", path: "/api/v1/namespaces/a/secrets", codes: nobody, lacks: secret64},
				{as: "fickle", path: "/api/v1/namespaces/a/secrets?watch=1", codes: nobody, lacks: secret64},
				{
					as: "fickle", path: "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dcanary",
					codes: nobody, lacks: secret64,
				},
				{
					as: "fickle", path: "/api/v1/namespaces/a/secrets?watch=1&fieldSelector=metadata.name%3Dcanary",
					codes: nobody, lacks: secret64,
				},
			},
			controls: []ask{{as: "constant", path: "/api/v1/namespaces/a/secrets/canary", codes: ok, has: secret64}},
		},
		{
			Number: "31", Position: Pod, Goal: "get a token of another account from the hub",
			Sent: "POST serviceaccounts/reader/token with a token, and without", Expected: "503, 403 or 401",
			Control: "the kubelet gets the one that it had", prepare: hadToken,
			asks: []ask{
				{
					as: "reader", method: http.MethodPost, path: "/api/v1/namespaces/a/serviceaccounts/reader/token",
					body: "{token request}", codes: nobody, lacks: "eyJ",
				},
				{
					method: http.MethodPost, path: "/api/v1/namespaces/a/serviceaccounts/reader/token",
					body: "{token request}", codes: nobody, lacks: "eyJ",
				},
				{
					as: "reader", at: plainDoor, h1: true, method: http.MethodPost,
					path: "/api/v1/namespaces/a/serviceaccounts/reader/token", body: "{token request}",
					codes: nobody, lacks: "eyJ",
				},
			},
			play: func(ctx context.Context, x *scene) error {
				x.check(ctx, x.kept["token request"].(ask))
				return nil
			},
		},
		{
			Number: "32", Position: Pod, Goal: "have the hub write for you when the cloud is back",
			Sent:     "POST events, PATCH nodes/…/status, PUT of the Node's Lease with a token",
			Expected: "503 or 403, nothing queued",
			Control:  "the kubelet's status is queued",
			before: []ask{
				reads, {as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok},
			},
			play: queueNothing,
			controls: []ask{{
				as: "kubelet", method: http.MethodPatch, path: "/api/v1/nodes/{node}/status",
				header: []string{kubeletAgent, "Content-Type: application/strategic-merge-patch+json"},
				body:   `{"status":{"conditions":[{"type":"FromKubelet","status":"True"}]}}`, codes: ok,
			}},
		},
		{
			Number: "34", Position: Member, Goal: "have the hub hand out a token that was never issued",
			Sent:     "as the node: the token of another uid, of another audience, for longer, of another account",
			Expected: "503 or 403",
			Control:  "the one that was issued", prepare: hadToken, play: otherTokens,
		},
		{
			Number: "35", Position: Member, Goal: "write about another node",
			Sent:     "PATCH nodes/<other>/status, PUT pods/<of other>/status, its Lease",
			Expected: "403 or 503, nothing queued", Control: "its own status is queued",
			before:  []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}},
			prepare: kubeletPod, play: writeOthers,
			controls: []ask{{
				as: "kubelet", method: http.MethodPatch, path: "/api/v1/nodes/{node}/status",
				header: []string{kubeletAgent, "Content-Type: application/strategic-merge-patch+json"},
				body:   `{"status":{"conditions":[{"type":"FromKubelet","status":"False"}]}}`, codes: ok,
			}},
		},
	}
	for i := range all {
		all[i].place, all[i].away = here, true
	}
	return append(all, crowdings()...)
}

// crowdings are attacks after which a hub knows nobody any more: each has one for itself.
func crowdings() []Attack {
	reads := ask{as: "reader", path: plainMap, codes: ok, has: "hello"}
	kubelet := ask{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}
	stillServed := func(ctx context.Context, x *scene) error {
		x.try(ctx, reads)
		x.try(ctx, ask{as: "reader", path: slices1, codes: ok, has: "shop-1"})
		return nil
	}
	return []Attack{
		{
			Number: "11", Position: Pod, Goal: "let the hub forget what others may do, without a credential",
			Sent:     "1,100 invented tokens as in 9; then the cloud goes away and another pod reads what it read before",
			Expected: "200",
			Control:  "the kubelet reads on", place: own("11"), away: true, before: []ask{kubelet},
			prepare: func(ctx context.Context, x *scene) error {
				if a := x.send(ctx, reads); !a.right(reads) {
					return fmt.Errorf("the reader: %s", a)
				}
				if err := nextMinute(ctx); err != nil {
					return err
				}
				return x.repeat(ctx, 1100, func(i int) ask {
					return ask{
						wire: withTrick(
							"/version", fmt.Sprintf("crowd-%d", i), append(tricks()[0], "Connection: close"),
						),
					}
				})
			},
			play: stillServed, controls: []ask{kubelet},
		},
		{
			Number: "12", Position: Pod, Goal: "let the hub forget what others may do, with a token of no rights",
			Sent:     "Impersonate-User: u1 to u1100; then the cloud goes away and another pod reads what it read before",
			Expected: "200",
			Control:  "the kubelet reads on", place: own("12"), away: true, before: []ask{kubelet},
			prepare: func(ctx context.Context, x *scene) error {
				if a := x.send(ctx, reads); !a.right(reads) {
					return fmt.Errorf("the reader: %s", a)
				}
				if err := nextMinute(ctx); err != nil {
					return err
				}
				return x.repeat(ctx, 1100, func(i int) ask {
					return ask{
						as: "other", path: "/api/v1/namespaces/a/pods/y",
						header: []string{fmt.Sprintf("Impersonate-User: u%d", i)},
					}
				})
			},
			play: stillServed, controls: []ask{kubelet},
		},
		{
			Number: "12b", Position: Pod, Goal: "let the hub forget what others may do, with a token of no rights",
			Sent:     "1,100 paths that are forbidden, with extra headers, groups and uids of impersonation",
			Expected: "200",
			Control:  "the kubelet reads on", place: own("12b"), away: true, before: []ask{kubelet}, Slow: true,
			prepare: func(ctx context.Context, x *scene) error {
				if a := x.send(ctx, reads); !a.right(reads) {
					return fmt.Errorf("the reader: %s", a)
				}
				if err := nextMinute(ctx); err != nil {
					return err
				}
				return x.repeat(ctx, 3300, func(i int) ask {
					headers := [][]string{
						nil, {"Impersonate-User: u", fmt.Sprintf("Impersonate-Group: g%d", i)}, {
							"Impersonate-User: u", fmt.Sprintf("Impersonate-Extra-X%d: y", i),
						},
					}
					return ask{as: "other", path: fmt.Sprintf("/api/v1/namespaces/a/pods/y%d", i), header: headers[i%3]}
				})
			},
			play: stillServed, controls: []ask{kubelet},
		},
		{
			Number: "33", Position: Thief, Goal: "have something written by a node's certificate that has expired",
			Sent:     "PATCH of the Node's status while the cloud is away; then the cloud is back",
			Expected: "nothing of it arrives",
			Control:  "what was written by the kubelet's valid certificate arrives", place: own("33"), away: true,
			before: []ask{kubelet}, prepare: lapsed, play: lapsedWrites, after: nothingPushed,
		},
	}
}
