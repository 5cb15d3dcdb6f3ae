package images

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/exchange"
)

// layout writes a store as containerd does. sim/containerd holds the layout against the real one.
type layout struct {
	*testing.T
	*Store
}

func newLayout(t *testing.T) layout {
	return layout{t, &Store{Root: t.TempDir()}}
}

// has reports whether a blob is complete.
func (l layout) has(d exchange.Digest) bool {
	_, ok := l.Size(d)
	return ok
}

// put makes a complete blob.
func (l layout) put(body string) exchange.Digest {
	l.Helper()
	d := exchange.Digest(sha256.Sum256([]byte(body)))
	l.write(filepath.Join("blobs", "sha256", d.Hex()), body)
	return d
}

// ingest makes one that is being pulled, and returns its folder.
func (l layout) ingest(ref, data, total string) string {
	l.Helper()
	dir := filepath.Join("ingest", fmt.Sprintf("%x", sha256.Sum256([]byte(ref))))
	l.write(filepath.Join(dir, "ref"), ref)
	l.write(filepath.Join(dir, "data"), data)
	if total != "" {
		l.write(filepath.Join(dir, "total"), total)
	}
	return filepath.Join(l.Root, dir)
}

func (l layout) write(name, body string) {
	l.Helper()
	path, part := filepath.Join(l.Root, name), filepath.Join(l.Root, "part") // containerd renames what is complete, too
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(part, []byte(body), 0o644),
		os.Rename(part, path)); err != nil {
		l.Fatal(err)
	}
}

// grow adds to what is being pulled.
func (l layout) grow(dir, data string) {
	l.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "data"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		l.Fatal(err)
	}
	_, err = f.WriteString(data)
	if err := errors.Join(err, f.Close()); err != nil {
		l.Fatal(err)
	}
}

// TestStore: what is complete, what is being pulled, and what is neither.
func TestStore(t *testing.T) {
	l := newLayout(t)
	if l.has(exchange.Digest{}) || !l.Changed().IsZero() {
		t.Error("something is in a store that does not exist")
	}
	if all, err := l.List(10); len(all) != 0 || err != nil {
		t.Errorf("%v: %v", all, err)
	}
	if _, _, err := l.Ingested(exchange.Digest{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that there is none", err)
	}
	a, b := l.put("a"), l.put("b")
	l.write(filepath.Join("blobs", "sha256", "no digest"), "x")
	if all, err := l.List(10); err != nil || len(all) != 2 || !slices.Contains(all, a) || !l.has(b) {
		t.Errorf("%v: %v, want two", all, err)
	}
	if err := os.Chtimes(filepath.Join(l.blobs(), a.Hex()), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if all, err := l.List(1); err != nil || !slices.Equal(all, []exchange.Digest{b}) {
		t.Errorf("%v: %v, want the newest, %v", all, err, b)
	}
	c := exchange.Digest{9}
	l.ingest("k8s.io/3/layer-"+c.String(), "1234", "10")
	l.ingest("moby/7/layer-"+c.String(), "123456", "10")
	l.ingest("moby/8/layer-"+exchange.Digest{8}.String(), "12345678", "10")
	file, total, err := l.Ingest(c)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() != 6 || total != 10 {
		t.Errorf("an ingest of %v bytes, total %d, want that of 6: %v", info, total, err)
	}
	for _, total := range []string{"", "x", "-1", "0", "99999999999999999"} {
		d := exchange.Digest{7, byte(len(total))}
		l.ingest("a/1/layer-"+d.String(), "1", total)
		if _, _, err := l.Ingest(d); !errors.Is(err, errNoSize) {
			t.Errorf("total %q: %v, want %v", total, err, errNoSize)
		}
	}
	if err := os.Mkdir(filepath.Join(l.blobs(), exchange.Digest{6}.Hex()), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Open(exchange.Digest{6}); !errors.Is(err, fs.ErrNotExist) || l.has(exchange.Digest{6}) {
		t.Errorf("a folder is a blob: %v", err)
	}
}

// TestListed: a manifest of an index in the store is known as one.
func TestListed(t *testing.T) {
	l := newLayout(t)
	child := exchange.Digest{5}
	if l.listed(child) {
		t.Error("an empty store lists it")
	}
	l.put(strings.Repeat("x", 200))
	l.put(`{"manifests":[{"digest":"` + exchange.Digest{4}.String() + `"}],"x":"` + strings.Repeat(" ", 100) + `"}`)
	if l.listed(child) {
		t.Error("another index lists it")
	}
	l.put(`{"manifests":[{"digest":"` + exchange.Digest{3}.String() + `"},{"digest":"` + child.String() + `"}]}`)
	if !l.listed(child) {
		t.Error("no index lists it")
	}
}

// TestGrowing: a reader gets each byte as it comes, and the end by the size, also through the rename that completes
// it.
func TestGrowing(t *testing.T) {
	l := newLayout(t)
	synctest.Test(t, func(t *testing.T) {
		const body = "the quick brown fox"
		d := exchange.Digest(sha256.Sum256([]byte(body)))
		dir := l.ingest("k8s.io/1/layer-"+d.String(), body[:3], fmt.Sprint(len(body)))
		file, total, err := l.Ingest(d)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		go func() {
			for i := 4; i <= len(body); i++ {
				time.Sleep(exchange.PullStall - time.Second)
				l.grow(dir, body[i-1:i])
			}
			if err := errors.Join(os.MkdirAll(l.blobs(), 0o755),
				os.Rename(filepath.Join(dir, "data"), filepath.Join(l.blobs(), d.Hex())), os.RemoveAll(dir)); err != nil {
				t.Error(err)
			}
		}()
		g := &growing{ctx: t.Context(), clock: clock.RealClock{}, file: file, total: total}
		got, err := io.ReadAll(g)
		if err != nil || string(got) != body {
			t.Errorf("%q: %v, want %q", got, err, body)
		}
		if end, err := g.Seek(0, io.SeekEnd); end != total || err != nil {
			t.Errorf("the end is at %d: %v", end, err)
		}
		if _, err := g.Seek(-1, io.SeekStart); err == nil {
			t.Error("there is something before the beginning")
		}
		synctest.Wait()
	})
}

// TestGrowingSlow: while containerd has a pull open, a reader waits for its next MiB; afterwards, not for long.
func TestGrowingSlow(t *testing.T) {
	l := newLayout(t)
	synctest.Test(t, func(t *testing.T) {
		d := exchange.Digest{1}
		dir := l.ingest("k8s.io/1/layer-"+d.String(), "1234", "10")
		containerd, err := os.OpenFile(filepath.Join(dir, "data"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		file, total, err := l.Ingest(d)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		const slow = exchange.PullSlow - time.Second
		go func() {
			time.Sleep(slow)
			if size, open, err := l.Ingested(d); size != 4 || !open || err != nil {
				t.Errorf("%d bytes, open %v: %v, want 4 and that it is", size, open, err)
			}
			_, err := containerd.WriteString("5678")
			if err := errors.Join(err, containerd.Close()); err != nil {
				t.Error(err)
			}
			if _, open, err := l.Ingested(d); open || err != nil {
				t.Errorf("open %v: %v, want that it is not", open, err)
			}
		}()
		began := time.Now()
		got, err := io.ReadAll(&growing{ctx: t.Context(), clock: clock.RealClock{}, file: file, total: total})
		if string(got) != "12345678" || !errors.Is(err, errStalled) {
			t.Errorf("%q, %v, want 8 bytes, and that it stalls", got, err)
		}
		if took := time.Since(began); took < slow+exchange.PullStall || took > slow+exchange.PullStall+2*looks {
			t.Errorf("it ended after %v, want %v", took, slow+exchange.PullStall)
		}
	})
}

// TestGrowingEnds: a reader ends when nothing comes, when the pull is given up, and when it begins again. What was
// there it has got.
func TestGrowingEnds(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(dir string) error
		want    error
		after   time.Duration
	}{
		"nothing comes":  {func(string) error { return nil }, errStalled, exchange.PullStall},
		"it is given up": {os.RemoveAll, errGone, time.Second},
		"it begins again": {
			func(dir string) error { return os.Truncate(filepath.Join(dir, "data"), 0) }, errShrunk, time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			synctest.Test(t, func(t *testing.T) {
				dir := l.ingest("k8s.io/1/layer-"+exchange.Digest{1}.String(), "1234", "10")
				file, total, err := l.Ingest(exchange.Digest{1})
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				began := time.Now()
				go func() {
					time.Sleep(time.Second - looks/2)
					if err := c.happens(dir); err != nil {
						t.Error(err)
					}
				}()
				g := &growing{ctx: t.Context(), clock: clock.RealClock{}, file: file, total: total}
				got, err := io.ReadAll(g)
				if string(got) != "1234" || !errors.Is(err, c.want) || !errors.Is(g.err, c.want) {
					t.Errorf("%q, %v, want 1234 and %v", got, err, c.want)
				}
				if took := time.Since(began); took < c.after || took > c.after+looks {
					t.Errorf("it ended after %v, want %v", took, c.after)
				}
				synctest.Wait()
			})
		})
	}
}
