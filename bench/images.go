package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// What a mirror of registries has, for how long it is looked at while it is idle, and what is read of it.
const (
	mirrored     = exchange.MaxHolds // blobs: as many as a node tells its pool
	mirrorWarm   = 4 * time.Minute
	mirrorSettle = 30 * time.Second
	layerSize    = 1e9
	layerReaders = 4 // members, each over a connection of its own
)

// Images measures what a hub pays for being a mirror of registries: two pools of one node each, of which one is.
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
		var s struct{ Images pooldoor.MirrorStatus }
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
	r := &run{Config: c, site: site, hubPart: hubs[on]}
	r.add(Figure{
		Name: fmt.Sprintf("hub memory, idle, a mirror of %d blobs above none, RssAnon", mirrored), Unit: "MB",
		Samples: []float64{(with - without) / mb}, Limit: mirrorIdle,
		Detail: fmt.Sprintf("%.1f MB with it, %.1f MB without", with/mb, without/mb),
	})
	err = r.layer(ctx, on, root)
	return r.figures, err
}

// layer measures what it costs a hub that members of its pool read a layer, beside http.ServeContent of the same file.
// Its memory is the most that it has while it serves, above the most while it is idle: garbage comes and goes in both.
func (r *run) layer(ctx context.Context, pool, root string) (err error) {
	before, err := peak(r.hubPart, func() error {
		select {
		case <-time.After(mirrorSettle):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	bare, stop, err := startBare(ctx, map[string][]byte{bareFile: []byte(blobOf(root, 0))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	readers := map[string][]target{}
	for i := range layerReaders {
		hub, err := r.asMember(pool, i+2)
		if err != nil {
			return err
		}
		readers[hub.name], readers[bare.name] = append(readers[hub.name], hub), append(readers[bare.name], bare)
	}
	hub := readers["hub"][0]
	path := contract.ImagesBlobsPath + "sha256:" + filepath.Base(blobOf(root, 0))
	more := map[string][]float64{}
	name := fmt.Sprintf("server CPU per GB, %d members read a layer of %.0f GB each", layerReaders, layerSize/1e9)
	got, err := r.compare(ctx, name, func(ctx context.Context, t target) (float64, error) {
		used, err := t.cpu(func() error {
			most, err := peak(t.part, func() error { return readAll(ctx, readers[t.name], path) })
			more[t.name] = append(more[t.name], (most-before)/mb)
			return err
		})
		return used.Seconds() / (layerReaders * layerSize / 1e9), err
	}, hub, bare)
	if err != nil {
		return err
	}
	r.add(Figure{
		Name: fmt.Sprintf(
			"hub memory, the most while %d members read a layer of %.0f GB each above the most while idle, RssAnon",
			layerReaders, layerSize/1e9),
		Unit: "MB", Samples: more[hub.name], Limit: mirrorServes, Detail: fmt.Sprintf("%.1f MB idle", before/mb),
	})
	r.ratio(name+", hub ÷ bare http.ServeContent of the same file", "s/GB", nil, got[0], got[1])
	return nil
}

// asMember is the port for the pool of its first hub, with the certificate of another member.
func (r *run) asMember(pool string, n int) (target, error) {
	vault, ok := r.site.(runtime.Vault)
	if !ok {
		return target{}, errors.New("the site does not issue certificates of its pools")
	}
	authority, err := vault.Authority(pool)
	if err != nil {
		return target{}, err
	}
	pair, err := authority.IssueTo(weirpki.Hub, weirpki.Subject{Pool: pool, Node: fmt.Sprintf("%s-%d", pool, n)}, 0)
	if err != nil {
		return target{}, err
	}
	door, err := r.site.Endpoint(pool+"-1", runtime.ClassNode)
	if err != nil {
		return target{}, err
	}
	at, err := url.Parse(door.URL)
	if err != nil {
		return target{}, err
	}
	return target{
		name: "hub", url: fmt.Sprintf("https://%s:%d", at.Hostname(), contract.HubPoolPort), part: r.hubPart,
		// Its certificate names the node by its subject, which other hubs of the pool look for.
		trust: rest.TLSClientConfig{Insecure: true, CertData: pair.CertPEM, KeyData: pair.KeyPEM},
	}, nil
}

// readAll reads the layer as several members do at the same time.
func readAll(ctx context.Context, readers []target, path string) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range readers {
		g.Go(func() error {
			c := t.client()
			defer c.CloseIdleConnections()
			n, err := t.discard(ctx, c, path)
			if err == nil && n != layerSize {
				err = fmt.Errorf("%s: %d bytes of a layer of %.0f", t.name, n, layerSize)
			}
			return err
		})
	}
	return g.Wait()
}

// blobOf is the file of a blob, by its number.
func blobOf(root string, i int) string {
	return filepath.Join(root, "blobs", "sha256", fmt.Sprintf("%04d%s", i, strings.Repeat("0", 60)))
}

// fillStore makes a content store of containerd. The first blob is a layer of zeros, which the disk need not hold;
// nobody reads the others, so they are empty.
func fillStore(root string) error {
	if err := os.MkdirAll(filepath.Dir(blobOf(root, 0)), 0o700); err != nil {
		return err
	}
	for i := range mirrored {
		if err := os.WriteFile(blobOf(root, i), nil, 0o600); err != nil {
			return err
		}
	}
	return os.Truncate(blobOf(root, 0), layerSize)
}
