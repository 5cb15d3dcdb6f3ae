package attack

import (
	"context"
	"net/http"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// sundryAttacks are what reviews tried, and found refused.
func sundryAttacks() []Attack {
	here := harbour()
	poolPaths := []string{
		slices1, slices1 + "?watch=1", contract.DirectoryPath, contract.DenylistPath, contract.TrustPath, contract.PulsePath,
	}
	return []Attack{
		{
			Number: "145", Position: Member, Goal: "read a hub's relays by what a coordinator shows to people",
			Sent: "a viewer's certificate at the port of a hub for its pool: lists, watches, directory, denylist, " +
				"trust, pulse",
			Expected: "no connection, or 403",
			Control:  "a hub of the pool reads the same list there; the viewer reads it at the coordinator", place: here,
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
			Expected: "401 or 403", Control: "one that may watch is answered at the same path as kube-apiserver answers it",
			place: here,
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
	}
}

// watchOf is the path by which kube-apiserver had collections watched before there was ?watch=1.
func watchOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "/apis/discovery.k8s.io/v1/"); ok {
		return "/apis/discovery.k8s.io/v1/watch/" + rest
	}
	return path
}
