package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

// The set of a node: 30 pods of 6 kB, 200 Secrets and ConfigMaps of 4 kB, each watched by itself, its Node of 8 kB.
const (
	wearPods  = 30
	wearFiles = 200
)

var (
	wearPod    = store.Resource{Version: "v1", Name: "pods"}
	wearNode   = store.Resource{Version: "v1", Name: "nodes"}
	wearSecret = store.Resource{Version: "v1", Name: "secrets"}
)

// keeper is what is compared: the store, and a naive one.
type keeper interface {
	change(in *store.Watching, o *wire.Object) error
	second(i int, now time.Time)
	told() (written int64, syncs int) // by itself
}

// ours is the store. It sees the changes as its hub would.
type ours struct {
	store   *store.Store
	watches []*store.Watching
}

func (k *ours) change(in *store.Watching, o *wire.Object) error {
	in.Event(&wire.Event{Type: wire.Modified, Object: o, Version: o.Version})
	return nil
}

// second passes: a bookmark for each watch in a minute, a sign of life every 10 s, a write when one is due.
func (k *ours) second(i int, now time.Time) {
	if i%60 == 0 {
		for _, w := range k.watches {
			w.Event(&wire.Event{Type: wire.Bookmark, Version: uint64(1_000_000 + i)})
		}
	}
	if i%10 == 0 {
		k.store.Fresh(now)
	}
	if i%5 == 0 {
		k.store.Tick()
	}
}

func (k *ours) told() (int64, int) {
	s := k.store.Stats()
	return s.Written, 2 * s.Flushes
}

// naive keeps each object in a file, rewritten beside the old one at each change, made durable and renamed.
type naive struct {
	dir     string
	written int64
	syncs   int
}

func (k *naive) change(_ *store.Watching, o *wire.Object) error {
	k.written += int64(len(o.Raw))
	k.syncs += 2
	return disk.WriteFile(filepath.Join(k.dir, strings.ReplaceAll(o.Key, "/", "_")), o.Raw)
}

func (k *naive) second(int, time.Time) {}

func (k *naive) told() (int64, int) { return k.written, k.syncs }

// wear drives a keeper through hours of a node's life in virtual time.
type wear struct {
	clock      *clocktesting.FakeClock
	rnd        *rand.Rand
	version    uint64
	keeper     keeper
	pods, node *store.Watching
	secrets    []*store.Watching
	dir        string
	device     *device // nil: this machine has none for us
}

// spent is what an hour cost.
type spent struct {
	bytes, device int64 // told by the keeper; seen by the device, -1 if there is none
	syncs         int
}

// Wear measures what a store writes in an hour, idle and under churn, beside a file per object.
func Wear(ctx context.Context) ([]Figure, error) {
	hours := []struct {
		name           string
		written, ratio *Limit
	}{
		{
			"idle, the node's status every 5 min", writtenIdle, nil,
		}, {"under churn, a pod's status each second", nil, writtenChurn},
	}
	mine, err := lives(ctx, true)
	if err != nil {
		return nil, err
	}
	theirs, err := lives(ctx, false)
	if err != nil {
		return nil, err
	}
	var figures []Figure
	for i, h := range hours {
		figures = append(figures, Figure{
			Name: "written in an hour, " + h.name, Unit: "MB", Samples: []float64{float64(mine[i].bytes) / mb}, Limit: h.written,
			Detail: fmt.Sprintf("%d syncs; a file per object: %.2f MB of content, %d syncs", mine[i].syncs,
				float64(theirs[i].bytes)/mb, theirs[i].syncs),
		})
		if mine[i].device >= 0 {
			figures = append(figures, Figure{
				Name: "of that at the device, over that of a file per object, " + h.name, Unit: "ratio",
				Samples: []float64{float64(mine[i].device) / float64(theirs[i].device)}, Limit: h.ratio,
				Detail: fmt.Sprintf("%.2f MB and %.2f MB reach an ext4 file system of each its own, journal and all",
					float64(mine[i].device)/mb, float64(theirs[i].device)/mb),
			})
		}
	}
	return figures, nil
}

// lives is an idle hour and one under churn, of the store or of the naive one.
func lives(ctx context.Context, real bool) (_ []spent, err error) {
	w := &wear{clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), rnd: rand.New(rand.NewPCG(6, 25))}
	if w.device, err = newDevice(ctx); err == nil {
		w.dir = filepath.Join(w.device.dir, "data")
		defer func() { err = errors.Join(err, w.device.close()) }()
	} else { // not root, or no loop devices: what the keepers tell has to do
		if w.dir, err = os.MkdirTemp("", "weir-wear-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(w.dir)) }()
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	if real {
		s, err := store.Open(store.Config{Dir: w.dir, Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		defer s.Close()
		if err := w.fill(s); err != nil {
			return nil, err
		}
	} else {
		w.keeper = &naive{dir: w.dir}
		w.secrets = make([]*store.Watching, wearFiles)
		for i := range wearFiles {
			if err := w.change(nil, "ns", fmt.Sprint("s", i), 4000); err != nil {
				return nil, err
			}
		}
	}
	var all []spent
	for _, second := range []func(int) error{w.idle, w.churn} {
		one, err := w.hour(second)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (w *wear) idle(second int) error {
	if second%300 != 0 {
		return nil
	}
	return w.change(w.node, "", "n", 8000)
}

func (w *wear) churn(second int) error {
	err := w.change(w.pods, "ns", fmt.Sprint("p", w.rnd.IntN(wearPods)), 6000)
	if second%10 == 0 {
		err = errors.Join(err, w.change(w.node, "", "n", 8000))
	}
	if second%60 == 0 {
		i := w.rnd.IntN(wearFiles)
		err = errors.Join(err, w.change(w.secrets[i], "ns", fmt.Sprint("s", i), 4000))
	}
	return err
}

// fill gives a store what a kubelet reads.
func (w *wear) fill(s *store.Store) error {
	k := &ours{store: s}
	w.keeper = k
	watch := func(r store.Resource, namespace, fields string, items ...*wire.Object) (*store.Watching, error) {
		shape := store.Shape{Component: "kubelet", Resource: r, Namespace: namespace, Fields: fields, Form: store.JSON}
		kind := wire.Kind{APIVersion: "v1", Kind: r.Name}
		l, err := s.List(shape, kind)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		for _, o := range items {
			l.Add(o)
		}
		l.Commit(w.version)
		out, err := s.Watch(shape, kind, w.version, false)
		k.watches = append(k.watches, out)
		return out, err
	}
	var pods []*wire.Object
	for i := range wearPods {
		pods = append(pods, w.object("ns", fmt.Sprint("p", i), 6000))
	}
	var err, nodeErr error
	w.pods, err = watch(wearPod, "", "spec.nodeName=n", pods...)
	w.node, nodeErr = watch(wearNode, "", "metadata.name=n", w.object("", "n", 8000))
	err = errors.Join(err, nodeErr)
	for i := range wearFiles {
		in, watchErr := watch(wearSecret, "ns", fmt.Sprintf("metadata.name=s%d", i), w.object("ns", fmt.Sprint("s", i), 4000))
		w.secrets = append(w.secrets, in)
		err = errors.Join(err, watchErr)
	}
	s.Flush()
	return err
}

func (w *wear) object(namespace, name string, size int) *wire.Object {
	w.version++
	raw := fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":"u","resourceVersion":"%d"},"fill":%q}`,
		namespace, name, w.version, strings.Repeat("x", size))
	o, err := wire.ParseObject(wire.JSON, raw)
	if err != nil {
		panic(err) // it is ours
	}
	return o
}

func (w *wear) change(in *store.Watching, namespace, name string, size int) error {
	return w.keeper.change(in, w.object(namespace, name, size))
}

// hour lets an hour pass.
func (w *wear) hour(second func(int) error) (spent, error) {
	before, err := w.sum()
	if err != nil {
		return spent{}, err
	}
	for i := range 3600 {
		w.clock.Step(time.Second)
		if err := second(i); err != nil {
			return spent{}, err
		}
		w.keeper.second(i, w.clock.Now())
	}
	after, err := w.sum()
	after.bytes, after.syncs = after.bytes-before.bytes, after.syncs-before.syncs
	if after.device >= 0 {
		after.device -= before.device
	}
	return after, err
}

func (w *wear) sum() (s spent, err error) {
	s.bytes, s.syncs = w.keeper.told()
	s.device = -1
	if w.device != nil {
		s.device, err = w.device.written()
	}
	return s, err
}
