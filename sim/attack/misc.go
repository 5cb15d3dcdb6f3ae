package attack

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/bounds"
)

// sundryAttacks are what reviews tried, and found refused.
func sundryAttacks() []Attack {
	here, small := harbour(), own("147")
	for name, value := range map[string]int{"callers-max-bytes": 8 << 20, "caller-rate": 10_000, "caller-burst": 10_000} {
		small.flags[name] = value
	}
	poolPaths := []string{slices1, slices1 + "?watch=1", contract.DirectoryPath, contract.DenylistPath, contract.TrustPath, contract.PulsePath}
	return []Attack{
		{
			Number: "145", Position: Member, Goal: "read a hub's relays by what a coordinator shows to people",
			Sent:     "a viewer's certificate at the port of a hub for its pool: lists, watches, directory, denylist, trust, pulse",
			Expected: "no connection, or 403", Control: "a hub of the pool reads the same list there; the viewer reads it at the coordinator", place: here,
			play: func(ctx context.Context, x *scene) error {
				for _, path := range poolPaths {
					x.try(ctx, ask{as: "viewer", at: poolDoor, path: path, codes: []int{0, http.StatusForbidden}})
				}
				x.check(ctx, ask{as: "member 2", at: poolDoor, path: slices1, codes: ok, has: "shop-1"})
				return nil
			},
			controls: []ask{{as: "viewer", at: coordinatorDoor, path: slices1, codes: ok, has: "shop-1"}},
		},
		{
			Number: "146", Position: Pod, Goal: "watch without the right to, by a path that is out of use",
			Sent:     "GET /apis/…/watch/endpointslices and its forms, by one that may list only, and by one that may nothing",
			Expected: "401 or 403", Control: "one that may watch is answered at the same path as kube-apiserver answers it", place: here,
			asks: []ask{
				{as: "lister", path: watchOf(slices1), codes: nobody},
				{as: "lister", path: watchOf(slicesOfA), codes: nobody},
				{as: "lister", path: watchOf(slicesOfA) + "/shop-1", codes: nobody},
				{as: "other", path: watchOf(slices1), codes: nobody},
				{as: "other", path: watchOf(slices1) + "?watch=false", codes: nobody},
				{as: "other", path: "/api/v1/watch/namespaces/a/secrets", codes: nobody},
				{path: watchOf(slices1), codes: nobody},
			},
			controls: []ask{{as: "reader", path: watchOf(slices1), codes: ok, has: "shop-1"}},
		},
		{
			Number: "147", Position: Pod, Goal: "hold more of a hub than its share by upgrades",
			Sent:     "200 connections that ask for a websocket of a watch each, and stay, at a hub whose callers may take 8 MiB",
			Expected: "no more than 96 are open at once", Control: "they are answered as long as there is room, and another pod is served meanwhile", place: small,
			before:   []ask{{as: "reader", path: plainMap, codes: ok, has: "hello"}},
			play:     upgrades,
			controls: []ask{{as: "reader", path: plainMap, codes: ok, has: "hello"}},
		},
	}
}

// watchOf is the path by which kube-apiserver had collections watched before there was ?watch=1.
func watchOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "/apis/discovery.k8s.io/v1/"); ok {
		return "/apis/discovery.k8s.io/v1/watch/" + rest
	}
	return path
}

// upgrades asks for websockets of one token on many connections, and keeps those that it gets.
func upgrades(ctx context.Context, x *scene) error {
	who, err := x.who("reader")
	if err != nil {
		return err
	}
	const sent, room = 200, 8 << 20 * 3 / 4 / bounds.WatchBytes
	open, busy := 0, 0
	for range sent {
		c, err := x.dial(ctx, hubDoor, who, "http/1.1")
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(answerPatience))
		if _, err := io.WriteString(c, "GET "+slices1+"?watch=1 HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer "+who.token+
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		switch {
		case err == nil && resp.StatusCode == http.StatusSwitchingProtocols:
			open++
		case err == nil && resp.StatusCode == http.StatusTooManyRequests:
			busy++
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	x.judge(open <= room, "%d of %d are open, %d were refused by a limit", open, sent, busy)
	x.control(open > room/2, "%d are open", open)
	token, err := x.account(ctx, "beside-upgrades")
	if err != nil {
		return err
	}
	x.let("beside", actor{token: token})
	served := within(ctx, patience, func() bool { return x.send(ctx, ask{as: "beside", path: plainMap}).code == http.StatusOK })
	x.control(served, "another pod while they are open: %t", served)
	return nil
}
