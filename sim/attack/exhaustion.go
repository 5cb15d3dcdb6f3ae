package attack

import (
	"context"
	"fmt"
	"strconv"
)

// What an attacker may cost others.
const (
	moreMemory = 96 << 20 // of a hub's RssAnon, while somebody tries to fill it
	fewDials   = 8        // connections over the uplink that many requests of somebody without a good token may open
)

func exhaustionAttacks() []Attack {
	reads := ask{as: "reader", path: plainMap, codes: ok, has: "hello"}
	slicesToo := ask{as: "reader", path: slices1, codes: ok, has: "shop-1"}
	return []Attack{
		{
			Number: "36", Position: Pod, Goal: "spend the uplink with bad tokens",
			Sent:     "200 requests with invented tokens, each followed by one of another pod",
			Expected: "at most 8 new connections over the uplink",
			Control:  "the other pod is served each time", place: own("36"), before: []ask{reads}, play: badTokens,
		},
		{
			Number: "37", Position: Pod, Goal: "spend the uplink without any credential",
			Sent:     "1,000 GET /version and /api/v1/pods at once on one connection",
			Expected: "at most 8 new connections over the uplink, and no more than 100 kB",
			Control:  "a pod with a token is served", place: own("37"), before: []ask{reads}, play: anonymousFlood,
			controls: []ask{reads, slicesToo},
		},
		{
			Number: "38", Position: Pod, Goal: "fill the hub's memory with headers",
			Sent:     "400 streams on 4 connections, each with 900 kB of headers and no end",
			Expected: "RssAnon grows by less than 96 MB", Control: "a pod with a token is served", place: own("38"),
			before: []ask{reads},
			play:   headerFlood, controls: []ask{reads},
		},
		{
			Number: "39", Position: Pod, Goal: "break open watches of others, or pile up reviews",
			Sent: "2,000 watches with invented tokens, opened and reset at once",
			Expected: "the open watch of another pod lives, at most 8 new connections, RssAnon grows by less than " +
				"96 MB",
			Control: "the watch shows a change", place: own("39"), before: []ask{reads}, play: resets(
				func(connection uint32, i int) string { return fmt.Sprintf("reset-%d-%d", connection, i) },
				func(int) string { return slices1 + "?watch=1" },
			),
			controls: []ask{slicesToo},
		},
		{
			Number: "39b", Position: Pod, Goal: "break open watches of others with one bad token",
			Sent: "2,000 watches and lists with one invented token and a selector each, opened and reset at once",
			Expected: "the open watch of another pod lives, at most 8 new connections, RssAnon grows by less than " +
				"96 MB",
			Control: "the watch shows a change", place: own("39b"), before: []ask{reads}, play: resets(
				func(uint32, int) string { return "one-invented" },
				func(i int) string {
					return []string{slices1 + "?watch=1&labelSelector=n%3D", plainMaps + "?labelSelector=n%3D"}[i%2] + strconv.Itoa(i)
				},
			),
			controls: []ask{slicesToo},
		},
		{
			Number: "40", Position: Pod, Goal: "stop the node's disk",
			Sent:     "lists, watches and gets with selectors of 40 kB to 200 kB, a name of 32 kB, 100 headers of Accept",
			Expected: "the store writes on; after a power cut without the cloud the node has what came later",
			Control:  "what came later is read after the restart", place: own("40"), before: []ask{reads},
			play: longSelector,
		},
		{
			Number: "41", Position: Pod, Goal: "have others' kept lists dropped",
			Sent:     "21,000 gets of names that do not exist",
			Expected: "another pod's list is served while the cloud is away", Control: "the kubelet's Node is",
			Slow:  true,
			place: own("41"), away: true,
			before: []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}},
			prepare: func(ctx context.Context, x *scene) error {
				list := ask{as: "reader", path: plainMaps, codes: ok, header: []string{"User-Agent: victim/1.0"}}
				if a := x.send(ctx, list); !a.right(list) {
					return fmt.Errorf("the victim: %s", a)
				}
				return x.flood(ctx, "reader2", 21000, func(i int) string { return fmt.Sprintf("%s/absent-%d", plainMaps, i) })
			},
			asks: []ask{
				{as: "reader", path: plainMaps, codes: ok, has: "hello", header: []string{"User-Agent: victim/1.0"}},
			},
			controls: []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}},
		},
		{
			Number: "42", Position: Pod, Goal: "stop the recording of others' paged lists",
			Sent:     "100 first pages with limit=1 that are never continued",
			Expected: "another pod's paged list is served while the cloud is away", Control: "the kubelet's Node is",
			place: own("42"), away: true,
			before:  []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}},
			prepare: firstPages,
			asks: []ask{
				{as: "reader", path: plainMaps, codes: ok, has: "page-2", header: []string{"User-Agent: victim/1.0"}},
			},
			controls: []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}},
		},
		{
			Number: "43", Position: Pod, Goal: "fill the hub's memory by reading nothing",
			Sent:     "100 GET /openapi/v2 on which nothing is read",
			Expected: "RssAnon grows by less than 96 MB, the answers end after a minute or so",
			Control:  "a pod with a token is served", Slow: true,
			place: own("43"), before: []ask{reads}, play: readNothing, controls: []ask{reads},
		},
		{
			Number: "44", Position: Pod, Goal: "take all connections of the hub",
			Sent:     "1,500 idle connections, 200 of half a header, 100 of a body byte by byte",
			Expected: "a bound on open files, and memory",
			Control:  "a pod with a token is served over a new connection meanwhile",
			place:    own("44"), before: []ask{reads}, play: idleConnections,
		},
		{
			Number: "45", Position: Pod, Goal: "fill the log",
			Sent:     "2,000 refused reads with as many User-Agents and names, while the cloud is away",
			Expected: "at most 100 lines", Control: "the kubelet's Node is read", place: own("45"), away: true,
			before: []ask{
				reads, {as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok},
			},
			play:     fillLog,
			controls: []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}},
		},
		{
			Number: "46", Position: Pod, Goal: "have the hub inflate a bomb",
			Sent: "a body of 4 GiB of zeros in 4 MB, gzipped, as Lease, Node status, Event and token request, with " +
				"the cloud",
			Expected: "RssAnon grows by less than 96 MB", Control: "the kubelet's own status is taken",
			place: own("46"),
			before: []ask{
				reads, {as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok},
			},
			play: bomb, controls: []ask{reads},
		},
		{
			Number: "46b", Position: Pod, Goal: "have the hub inflate a bomb without the cloud",
			Sent: "the bodies of 46, while the cloud is away", Expected: "RssAnon grows by less than 96 MB",
			Control: "a pod with a token is served",
			place:   own("46b"), away: true,
			before: []ask{
				reads, {as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok},
			},
			play: bomb, controls: []ask{reads},
		},
		{
			Number: "74", Position: Pod, Goal: "take the memory of a hub by watches",
			Sent:     "1,500 watches of a relayed resource by one token over one connection, and 300 over as many",
			Expected: "RssAnon grows by less than 96 MB", Control: "another pod watches", place: own("74"),
			before:   []ask{reads},
			play:     manyWatches,
			controls: []ask{{as: "other reader", path: slices1 + "?watch=1", codes: ok, has: "shop-1"}}, Slow: true,
			prepare: func(ctx context.Context, x *scene) error {
				token, err := x.account(ctx, "other-reader")
				x.let("other reader", actor{token: token})
				return err
			},
		},
		{
			Number: "150", Position: Pod, Goal: "hold more than a share of a hub, by watches that are upgraded",
			Sent:     "200 watches by WebSocket by one token, over as many connections, at a hub with 8 MiB for callers",
			Expected: "at most 96 are open at once, 64 KiB each, and 429 for the others",
			Control:  "another pod watches", place: littleRoom("150"), before: []ask{reads}, play: upgradedWatches,
			controls: []ask{{as: "other reader", path: slices1 + "?watch=1", codes: ok, has: "shop-1"}},
			prepare: func(ctx context.Context, x *scene) error {
				token, err := x.account(ctx, "other-reader")
				x.let("other reader", actor{token: token})
				return err
			},
		},
	}
}
