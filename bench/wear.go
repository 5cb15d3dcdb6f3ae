package bench

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

// The set of a node: 30 pods of 6 kB, 200 Secrets and ConfigMaps of 2 kB, each watched by itself, its Node of 8 kB.
const (
	wearPods   = 30
	wearFiles  = 200
	blockBytes = 4096
)

var (
	wearPod    = store.Resource{Version: "v1", Name: "pods"}
	wearNode   = store.Resource{Version: "v1", Name: "nodes"}
	wearSecret = store.Resource{Version: "v1", Name: "secrets"}
)

// naive is what a cache costs that keeps each object in a file, written anew beside the old one at each change and renamed: at
// least the blocks of the file, a sync of it and one of the folder. What the file system writes of its own is not counted.
type naive struct{ bytes, syncs int64 }

func (n *naive) write(o *wire.Object) {
	n.bytes += int64(len(o.Raw)+blockBytes-1) / blockBytes * blockBytes
	n.syncs += 2
}

// wear drives a store through hours of a node's life in virtual time.
type wear struct {
	clock   *clocktesting.FakeClock
	store   *store.Store
	rnd     *rand.Rand
	version uint64
	naive   naive
	pods    *store.Watching
	node    *store.Watching
	secrets []*store.Watching
}

// Wear measures the bytes that a store writes in an hour, idle and under churn, beside a file per object.
func Wear() (_ []Line, err error) {
	dir, err := os.MkdirTemp("", "weir-wear-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := &wear{clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), rnd: rand.New(rand.NewPCG(6, 25))}
	w.store, err = store.Open(store.Config{Dir: dir, Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer w.store.Close()
	if err := w.fill(); err != nil {
		return nil, err
	}
	idle := w.hour(func(second int) {
		if second%300 == 0 { // the kubelet's report of its node
			w.change(w.node, wearNode, "", "n", 8000)
		}
	})
	churn := w.hour(func(second int) {
		if second%10 == 0 {
			w.change(w.node, wearNode, "", "n", 8000)
		}
		w.change(w.pods, wearPod, "ns", fmt.Sprint("p", w.rnd.IntN(wearPods)), 6000)
		if second%60 == 0 {
			i := w.rnd.IntN(wearFiles)
			w.change(w.secrets[i], wearSecret, "ns", fmt.Sprint("s", i), 2000)
		}
	})
	line := func(name string, m measured, target float64) Line {
		return Line{Name: name, Got: float64(m.bytes) / mb, Unit: "MB/h", Target: target, Detail: fmt.Sprintf(
			"%d syncs; a file per object: at least %.2f MB and %d syncs for %d changes", m.syncs, float64(m.naive.bytes)/mb, m.naive.syncs, m.naive.syncs/2)}
	}
	return []Line{
		line("store: written when idle", idle, 0),
		line("store: written under churn, a pod's status each second", churn, 0),
	}, nil
}

func (w *wear) fill() error {
	var err error
	watch := func(r store.Resource, fields string, names ...string) *store.Watching {
		shape := store.Shape{Component: "kubelet", Resource: r, Fields: fields}
		if r == wearSecret {
			shape.Namespace = "ns"
		}
		l, listErr := w.store.List(shape, wire.Kind{APIVersion: "v1", Kind: r.Name})
		if err = errors.Join(err, listErr); err != nil {
			return nil
		}
		defer l.Close()
		for _, n := range names {
			l.Add(w.object(shape.Namespace, n, 4000))
		}
		l.Commit(w.version)
		out, watchErr := w.store.Watch(shape, wire.Kind{APIVersion: "v1", Kind: r.Name}, w.version, false)
		err = errors.Join(err, watchErr)
		return out
	}
	w.pods = watch(wearPod, "spec.nodeName=n")
	w.node = watch(wearNode, "metadata.name=n", "n")
	for i := range wearFiles {
		w.secrets = append(w.secrets, watch(wearSecret, fmt.Sprintf("metadata.name=s%d", i), fmt.Sprint("s", i)))
	}
	if err != nil {
		return err
	}
	for i := range wearPods {
		w.change(w.pods, wearPod, "ns", fmt.Sprint("p", i), 6000)
	}
	w.store.Flush()
	return nil
}

func (w *wear) object(namespace, name string, size int) *wire.Object {
	w.version++
	raw := fmt.Appendf(nil, `{"metadata":{"namespace":%q,"name":%q,"uid":"u","resourceVersion":"%d"},"fill":%q}`, namespace, name, w.version, strings.Repeat("x", size))
	o, err := wire.ParseObject(wire.JSON, raw)
	if err != nil {
		panic(err) // it is ours
	}
	return o
}

func (w *wear) change(in *store.Watching, _ store.Resource, namespace, name string, size int) {
	o := w.object(namespace, name, size)
	in.Event(&wire.Event{Type: wire.Modified, Object: o, Version: o.Version})
	w.naive.write(o)
}

type measured struct {
	bytes, syncs int64
	naive        naive
}

// hour lets an hour pass: what happens in a second, a bookmark for each watch in a minute, a sign of life every 10 s, a write when one is due.
func (w *wear) hour(second func(int)) measured {
	before := w.store.Stats()
	w.naive = naive{}
	for i := range 3600 {
		w.clock.Step(time.Second)
		second(i)
		if i%60 == 0 {
			w.version++
			for _, in := range append(w.secrets, w.pods, w.node) {
				in.Event(&wire.Event{Type: wire.Bookmark, Version: w.version})
			}
		}
		if i%10 == 0 {
			w.store.Fresh(w.clock.Now())
		}
		if i%5 == 0 {
			w.store.Tick()
		}
	}
	after := w.store.Stats()
	return measured{after.Written - before.Written, int64(2 * (after.Flushes - before.Flushes)), w.naive}
}
