package containerd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"

	"github.com/weir-edge/weir/impl/exchange"
)

// ratio fails if the registry served more than so many times an image.
func (p *pool) ratio(size int64, most float64) {
	p.t.Helper()
	got := float64(p.registry.served.Load()) / float64(size)
	p.t.Logf("the registry served %.3f times the image of %d bytes", got, size)
	if got > most || got < 0.99 {
		p.t.Errorf("the registry served %.3f times the image, want 1 to %.2f", got, most)
	}
}

// holds fails unless a node has the whole image, as containerd verified it.
func (n *node) holds(blobs map[string]blob) {
	n.pool.t.Helper()
	for d, b := range blobs {
		got, err := content.ReadBlob(context.Background(), n.store, descriptor(d, len(b.body)))
		if err != nil || !bytes.Equal(got, b.body) {
			n.pool.t.Errorf("%s: %s: %d bytes, want %d: %v", n.name, d, len(got), len(b.body), err)
		}
	}
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing for a minute: " + what)
		}
	}
}

// TestOnce: four nodes pull at the same moment, and one copy crosses the link. Two of them ask for the tag.
func TestOnce(t *testing.T) {
	r := newRegistry(t, 4<<20)
	size, _ := r.image("v1", 1, 6<<20, 1<<20, 2<<10)
	p := newPool(t, 4, r)
	if err := p.pullAll(r.ref("v1"), p.nodes...); err != nil {
		t.Fatal(err)
	}
	p.ratio(size, 1.03)
	for _, n := range p.nodes {
		n.holds(r.blobs)
	}
	if q := r.questions.Load(); q != 2 {
		t.Errorf("the registry was asked %d times for the tag, want twice", q)
	}
}

// grows is how many bytes a node has of blobs that it has not whole.
func (n *node) grows() (bytes int64) {
	all, err := n.store.ListStatuses(context.Background())
	if err != nil {
		n.pool.t.Error(err)
	}
	for _, s := range all {
		bytes += s.Offset
	}
	return bytes
}

// TestPullerKilled: the node that pulls goes off at half. Another one goes on from the byte that it has. What
// containerd of the first had not written yet is lost, a MiB at most.
func TestPullerKilled(t *testing.T) {
	r := newRegistry(t, 4<<20)
	size, _ := r.image("v1", 1, 20<<20)
	p := newPool(t, 4, r)
	ctx, kill := context.WithCancel(context.Background())
	killed := make(chan error, 1)
	go func() {
		_, err := p.nodes[0].pull(ctx, r.ref("v1"))
		killed <- err
	}()
	waitFor(t, "the first byte", func() bool { return r.served.Load() > 1<<20 })
	others := make(chan error, 1)
	go func() { others <- p.pullAll(r.ref("v1"), p.nodes[1:]...) }()
	waitFor(t, "half, and others that read it", func() bool {
		return r.served.Load() > size/2 &&
			!slices.ContainsFunc(p.nodes[1:], func(n *node) bool { return n.grows() == 0 })
	})
	kill()
	stop := p.nodes[0].stop
	p.nodes[0].stop = func() {}
	stop()
	if err := <-killed; err == nil {
		t.Fatal("the first node has pulled all: it was not killed at half")
	}
	if err := <-others; err != nil {
		t.Fatal(err)
	}
	p.ratio(size, 1.1)
	if r.ranges.Load() == 0 {
		t.Error("nobody went on from a byte: all was pulled again")
	}
	for _, n := range p.nodes[1:] {
		n.holds(r.blobs)
	}
}

// TestContainerdRestarts: containerd of the node that pulls is restarted, and loses its ingest or the end of it. The
// others go on, and so does it.
func TestContainerdRestarts(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"ingest stays":        func(string) error { return nil },
		"ingest disappears":   os.RemoveAll,
		"ingest is truncated": func(dir string) error { return os.Truncate(filepath.Join(dir, "data"), 1<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, 2<<20)
			size, _ := r.image("v1", 1, 6<<20)
			p := newPool(t, 2, r)
			first := p.nodes[0]
			ctx, kill := context.WithCancel(context.Background())
			killed := make(chan error, 1)
			go func() {
				_, err := first.pull(ctx, r.ref("v1"))
				killed <- err
			}()
			waitFor(t, "the first bytes", func() bool { return r.served.Load() > 1<<20 })
			other := make(chan error, 1)
			go func() { other <- p.pullAll(r.ref("v1"), p.nodes[1]) }()
			waitFor(t, "half", func() bool { return r.served.Load() > size/2 })
			kill()
			if err := <-killed; err == nil {
				t.Fatal("it was not killed at half")
			}
			all, err := filepath.Glob(filepath.Join(first.root, "ingest", "*"))
			if err != nil || len(all) != 1 {
				t.Fatalf("%d ingests, want one: %v", len(all), err)
			}
			if err := lose(all[0]); err != nil {
				t.Fatal(err)
			}
			if err := p.pullAll(r.ref("v1"), first); err != nil {
				t.Fatal(err)
			}
			if err := <-other; err != nil {
				t.Fatal(err)
			}
			for _, n := range p.nodes {
				n.holds(r.blobs)
			}
			p.ratio(size, 1.6)
		})
	}
}

// TestRegistryAway: what one node had, another one starts by its tag while the cloud is away. What nobody has fails.
func TestRegistryAway(t *testing.T) {
	r := newRegistry(t, 0)
	size, digest := r.image("v1", 1, 1<<20)
	p := newPool(t, 2, r)
	if err := p.pullAll(r.ref("v1"), p.nodes[0]); err != nil {
		t.Fatal(err)
	}
	p.desk.Reset() // hubs tell another desk what they have, and what tags lead to
	waitFor(t, "the desk knows the image", func() bool {
		a, err := p.desk.Exchange("somebody", asks(r.ref("v1")))
		return err == nil && a.Resolution != nil
	})
	p.away.Store(true)
	r.CloseClientConnections()
	r.Close()
	got, err := p.nodes[1].pull(context.Background(), r.ref("v1"))
	if err != nil || got != digest {
		t.Fatalf("%s, want %s: %v", got, digest, err)
	}
	p.nodes[1].holds(r.blobs)
	p.ratio(size, 1)
	if _, err := p.nodes[1].pull(context.Background(), r.ref("v2")); err == nil {
		t.Error("a tag that nobody knows was pulled")
	}
}

// TestTagMoves: a tag that leads elsewhere is seen by a node after a minute, and not by what the pool had. Within it,
// all nodes have the same.
func TestTagMoves(t *testing.T) {
	r := newRegistry(t, 0)
	_, before := r.image("v1", 1, 1<<10)
	p := newPool(t, 3, r)
	if err := p.pullAll(r.ref("v1"), p.nodes[:2]...); err != nil {
		t.Fatal(err)
	}
	_, after := r.image("v1", 2, 1<<10)
	got, err := p.nodes[2].pull(context.Background(), r.ref("v1"))
	if err != nil || got != before {
		t.Errorf("within a minute: %s, want %s as the other nodes: %v", got, before, err)
	}
	p.desk.Reset() // stands for the minute: nothing is known of the tag
	for _, n := range p.nodes {
		n.stop()
		n.stop = func() {}
	}
	fresh := p.newNode("edge-9")
	if got, err := fresh.pull(context.Background(), r.ref("v1")); err != nil || got != after {
		t.Errorf("afterwards: %s, want %s: %v", got, after, err)
	}
}

// TestNobodyHas: a digest that nobody has is an error of the registry, at once, at all nodes one after the other.
func TestNobodyHas(t *testing.T) {
	r := newRegistry(t, 0)
	p := newPool(t, 1, r)
	host := strings.TrimPrefix(r.URL, "http://")
	_, err := p.nodes[0].pull(context.Background(), host+"/app@sha256:"+strings.Repeat("ab", 32))
	if err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("%v, want that it is not found", err)
	}
}

// TestRegistryRefuses: while the cloud is there, a registry that refuses a pull by digest, or is gone, is heard, although
// the pool has the image. While the cloud is away the pool has it.
func TestRegistryRefuses(t *testing.T) {
	r := newRegistry(t, 0)
	_, digest := r.image("v1", 1, 1<<20)
	p := newPool(t, 2, r)
	if err := p.pullAll(r.ref("v1"), p.nodes[0]); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the pool has the image", func() bool { return p.known(r) })
	ref := strings.TrimPrefix(r.URL, "http://") + "/app@" + digest
	refused := func(what, says string) {
		t.Helper()
		if _, err := p.nodes[1].pull(context.Background(), ref); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a registry that %s: %v, want %q", what, err, says)
		}
	}
	r.refuses.Store(true)
	refused("refuses", "403")
	r.CloseClientConnections()
	r.Close()
	refused("is gone", "resolve: ") // containerd says "not found", as with a mirror that is off
	p.away.Store(true)
	if _, err := p.nodes[1].pull(context.Background(), ref); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].holds(r.blobs)
}

// TestRedirect: a registry that redirects blobs to another server is followed by the node that pulls, and one copy
// crosses the link.
func TestRedirect(t *testing.T) {
	r := newRegistry(t, 4<<20)
	size, _ := r.image("v1", 1, 4<<20, 2<<10)
	elsewhere := httptest.NewServer(r)
	t.Cleanup(func() {
		elsewhere.CloseClientConnections()
		elsewhere.Close()
	})
	r.store = elsewhere.URL
	p := newPool(t, 3, r)
	if err := p.pullAll(r.ref("v1"), p.nodes...); err != nil {
		t.Fatal(err)
	}
	p.ratio(size, 1.03)
	for _, n := range p.nodes {
		n.holds(r.blobs)
	}
}

// TestArchitectures: an index with no image for the architecture of the nodes is an error that names that, at each
// node, and leaves no pull that others wait for.
func TestArchitectures(t *testing.T) {
	r := newRegistry(t, 0)
	r.platform("v1", "pdp11")
	p := newPool(t, 2, r)
	for _, n := range p.nodes {
		began := time.Now()
		_, err := n.pullFor(context.Background(), r.ref("v1"), platforms.Default())
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "no match for platform") ||
			took > exchange.PullStall/2 {
			t.Errorf("%s: %v after %v, want that no image is for its platform, at once", n.name, err, took)
		}
	}
	size, _ := r.image("v2", 1, 1<<20)
	r.served.Store(0)
	if err := p.pullAll(r.ref("v2"), p.nodes...); err != nil {
		t.Fatal(err)
	}
	p.ratio(size, 1.1)
}

// TestGarbage: containerd's garbage collection removes a blob while another node reads it. The reader has all of it.
func TestGarbage(t *testing.T) {
	r := newRegistry(t, 0)
	size, _ := r.image("v1", 1, 32<<20)
	p := newPool(t, 2, r)
	first, second := p.nodes[0], p.nodes[1]
	if err := p.pullAll(r.ref("v1"), first); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the desk knows the layer", func() bool { return p.known(r) })
	pulled := make(chan error, 1)
	go func() { pulled <- p.pullAll(r.ref("v1"), second) }()
	var layer digest.Digest
	for d, b := range r.blobs {
		if len(b.body) == 32<<20 {
			layer = digest.Digest(d)
		}
	}
	waitFor(t, "the second node reads the layer", func() bool {
		all, err := filepath.Glob(filepath.Join(second.root, "ingest", "*", "data"))
		if err != nil || len(all) == 0 {
			_, err := second.store.Info(context.Background(), layer)
			return err == nil
		}
		info, err := os.Stat(all[0])
		return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 1<<20
	})
	if err := first.store.Delete(context.Background(), layer); err != nil {
		t.Fatal(err)
	}
	if err := <-pulled; err != nil {
		t.Fatal(err)
	}
	second.holds(r.blobs)
	p.ratio(size, 1)
}

// TestLiar: a member that serves wrong bytes is found by the hub that passes them on, containerd refuses them, and the
// next try reads elsewhere.
func TestLiar(t *testing.T) {
	r := newRegistry(t, 0)
	r.image("v1", 1, 1<<20)
	p := newPool(t, 2, r)
	if err := p.pullAll(r.ref("v1"), p.nodes[0]); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the desk knows the layer", func() bool { return p.known(r) })
	for d, b := range r.blobs {
		if len(b.body) == 1<<20 {
			p.nodes[0].lies.Store(&d)
		}
	}
	err := p.pullAll(r.ref("v1"), p.nodes[1])
	if err == nil || !strings.Contains(err.Error(), "unexpected commit digest") {
		t.Fatalf("%v, want that containerd refuses the layer", err)
	}
	// containerd collects what it has left of a pull that failed.
	if err := os.RemoveAll(filepath.Join(p.nodes[1].root, "ingest")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.nodes[1].root, "ingest"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.pullAll(r.ref("v1"), p.nodes[1]); err != nil {
		t.Errorf("the next try: %v", err)
	}
	p.nodes[1].holds(r.blobs)
}

// TestNothingStored: the hub writes nothing into the store, and keeps no content: a full disk is containerd's to
// report.
func TestNothingStored(t *testing.T) {
	r := newRegistry(t, 0)
	r.image("v1", 1, 1<<20)
	p := newPool(t, 2, r)
	if err := p.pullAll(r.ref("v1"), p.nodes[0]); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the desk knows the layer", func() bool { return p.known(r) })
	n := p.nodes[1]
	if err := os.Mkdir(filepath.Join(n.root, "blobs"), 0o755); err != nil {
		t.Fatal(err)
	}
	var layer string
	for d, b := range r.blobs {
		if len(b.body) == 1<<20 {
			layer = d
		}
	}
	got, err := n.read(layer, strings.TrimPrefix(r.URL, "http://"))
	if err != nil || fmt.Sprintf("sha256:%x", sha256.Sum256(got)) != layer {
		t.Fatalf("the mirror served %d bytes: %v", len(got), err)
	}
	err = filepath.WalkDir(n.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("the hub wrote %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
