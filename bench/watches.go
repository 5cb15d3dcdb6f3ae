package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	watchers       = 100
	eventsPerRound = 120
)

// pace is how often something changes.
type pace struct {
	name  string
	every time.Duration
}

// paces are a cluster at work and one in which much changes.
func paces() []pace {
	return []pace{{"1,000 events a minute", time.Minute / 1000}, {"60 events a second", time.Second / 60}}
}

// watchCPU is the server's CPU time per event and watcher: what a round of changes costs with watchers, less what it
// costs without, which for kube-apiserver includes taking the writes.
func watchCPU(ctx context.Context, t target, change func(ctx context.Context, n int) error) (time.Duration, error) {
	without, err := t.cpu(func() error { return change(ctx, eventsPerRound) })
	if err != nil {
		return 0, err
	}
	version, err := latest(ctx, t)
	if err != nil {
		return 0, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var seen atomic.Int64
	failed := make(chan error, watchers)
	for range watchers {
		c := t.client()
		body, err := t.get(watching, c, fmt.Sprintf("%s?watch=1&resourceVersion=%d", slicesPath, version))
		if err != nil {
			return 0, err
		}
		wg.Go(func() {
			defer c.CloseIdleConnections()
			defer body.Close()
			if err := countFrames(body, &seen); watching.Err() == nil {
				failed <- err
			}
		})
	}
	with, err := t.cpu(func() error {
		if err := change(ctx, eventsPerRound); err != nil {
			return err
		}
		return waitFor(ctx, failed, func() bool { return seen.Load() >= watchers*eventsPerRound })
	})
	stop()
	wg.Wait()
	return (with - without) / (watchers * eventsPerRound), err
}

// countFrames reads a protobuf watch and counts its frames without looking into them, until an error ends it. It reads
// frames as client-go does: each into a slice.
func countFrames(body io.Reader, seen *atomic.Int64) error {
	var head [4]byte
	frame := make([]byte, 64<<10)
	for {
		if _, err := io.ReadFull(body, head[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(head[:]))
		if n > len(frame) {
			return fmt.Errorf("a frame of %d bytes", n)
		}
		if _, err := io.ReadFull(body, frame[:n]); err != nil {
			return err
		}
		seen.Add(1)
	}
}

// latest is the version of the server's list.
func latest(ctx context.Context, t target) (uint64, error) {
	c := t.client()
	defer c.CloseIdleConnections()
	body, err := t.get(ctx, c, slicesPath+"?limit=1")
	if err != nil {
		return 0, err
	}
	m, err := readList(body, func() {})
	return m.Version, errors.Join(err, body.Close())
}

// readList reads a list of EndpointSlices in protobuf and tells of each item.
func readList(r io.Reader, item func()) (wire.ListMeta, error) {
	kind := wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
	return wire.ReadList(r, wire.Protobuf, kind, func(*wire.Object) error { item(); return nil })
}

func waitFor(ctx context.Context, failed <-chan error, done func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
