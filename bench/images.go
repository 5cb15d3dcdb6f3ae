package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/mirror"
	"github.com/weir-edge/weir/impl/images/desk"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// What an idle mirror of registries has, and for how long it is looked at.
const (
	mirrored     = desk.MaxHolds // blobs: as many as a node tells its pool
	mirrorWarm   = 4 * time.Minute
	mirrorSettle = 30 * time.Second
)

// Images measures what an idle hub pays for being a mirror of registries: two pools of one node each, of which one is.
func Images(ctx context.Context, c Config) (_ []Figure, err error) {
	c = c.withDefaults()
	root, err := os.MkdirTemp("", "weir-bench-images-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	if err := fillStore(root); err != nil {
		return nil, err
	}
	const off, on = "off", "on"
	topology := runtime.Topology{Pools: []runtime.Pool{
		{Name: off, Nodes: 1, Mode: runtime.Weir, Unlinked: true, Unread: true},
		{Name: on, Nodes: 1, Mode: runtime.Weir, Unlinked: true, Unread: true, HubFlags: parts.Flags{
			"images-port": contract.HubImagesPort, "images-root": root,
		}},
	}}
	site, err := (&runtime.Local{}).Up(ctx, topology, c.Progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, site.Down(context.WithoutCancel(ctx))) }()
	hubs := map[string]runtime.Part{}
	for _, pool := range []string{off, on} {
		hub := runtime.HubOf(pool + "-1")
		if err := runtime.Start(ctx, site, runtime.CoordinatorOf(pool), hub); err != nil {
			return nil, err
		}
		if hubs[pool], err = site.Part(hub); err != nil {
			return nil, err
		}
	}
	known := func() bool {
		var s struct{ Images mirror.Status }
		return hubs[on].Status(ctx, &s) == nil && s.Images.Desk && s.Images.Holds == mirrored
	}
	if err := waitFor(ctx, nil, known); err != nil {
		return nil, fmt.Errorf("the pool hears nothing of the mirror: %w", err)
	}
	c.Progress("idle hubs, with a mirror and without")
	select {
	case <-time.After(mirrorWarm):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	without, _, err := memory(ctx, hubs[off], mirrorSettle)
	if err != nil {
		return nil, err
	}
	with, _, err := memory(ctx, hubs[on], mirrorSettle)
	if err != nil {
		return nil, err
	}
	f := Figure{
		Name: fmt.Sprintf("hub memory, idle, a mirror of %d blobs above none, RssAnon", mirrored), Unit: "MB",
		Samples: []float64{(with - without) / mb}, Limit: AtMost(1, "issue 36"),
		Detail: fmt.Sprintf("%.1f MB with it, %.1f MB without", with/mb, without/mb),
	}
	c.Progress(f.String())
	return []Figure{f}, nil
}

// fillStore makes a content store of containerd. Nobody reads its blobs, so they are empty.
func fillStore(root string) error {
	dir := filepath.Join(root, "blobs", "sha256")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := range mirrored {
		name := fmt.Sprintf("%04d%s", i, strings.Repeat("0", 60))
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}
