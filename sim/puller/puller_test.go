package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const ref = "registry.weir.test/weir/app:v1"

// store serves blobs and manifests as a registry does, and notes what it is asked.
type store struct {
	t     *testing.T
	blobs map[string][]byte // by digest
	tag   string            // digest
	types map[string]string

	mu    sync.Mutex
	asked []string // method, path, and the range
	hold  func(w http.ResponseWriter, r *http.Request) bool
}

func newStore(t *testing.T, layers ...int) *store {
	s := &store{t: t, blobs: map[string][]byte{}, types: map[string]string{}}
	type d = map[string]any
	var list []any
	for i, size := range layers {
		data := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(data)
		list = append(list, s.put("application/vnd.oci.image.layer.v1.tar", data))
	}
	var all []any
	for _, arch := range []string{runtime.GOARCH, "riscv64"} {
		config := s.json("application/vnd.oci.image.config.v1+json", d{"architecture": arch, "os": "linux"})
		m := s.json("application/vnd.oci.image.manifest.v1+json", d{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": list,
		})
		m["platform"] = d{"architecture": arch, "os": "linux"}
		all = append(all, m)
	}
	top := s.json("application/vnd.oci.image.index.v1+json", d{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": all,
	})
	s.tag = top["digest"].(string)
	return s
}

func (s *store) json(mediaType string, v any) map[string]any {
	data, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.put(mediaType, data)
}

func (s *store) put(mediaType string, data []byte) map[string]any {
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	s.blobs[digest], s.types[digest] = data, mediaType
	return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(data)}
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
	hold := s.hold
	s.mu.Unlock()
	if hold != nil && hold(w, r) {
		return
	}
	digest := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if digest == "v1" {
		digest = s.tag
	}
	data, ok := s.blobs[digest]
	if !ok {
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", s.types[digest])
	w.Header().Set("Docker-Content-Digest", digest)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// count is how often it was asked for something.
func (s *store) count(part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if strings.Contains(a, part) {
			n++
		}
	}
	return n
}

// layer is the digest of the largest blob.
func (s *store) layer() (digest string) {
	for d, data := range s.blobs {
		if digest == "" || len(data) > len(s.blobs[digest]) {
			digest = d
		}
	}
	return digest
}

func open(t *testing.T, root, hosts string) *puller {
	t.Helper()
	certs := t.TempDir()
	if err := os.MkdirAll(filepath.Join(certs, "registry.weir.test"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(certs, "registry.weir.test", "hosts.toml"), []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := newPuller(config{root: root, certs: certs, patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// stored are the bytes that are on disk where containerd keeps them, those of blobs that grow among them.
func stored(t *testing.T, p *puller) (sum int64) {
	t.Helper()
	for _, pattern := range []string{"blobs/sha256/*", "ingest/*/data"} {
		files, err := filepath.Glob(filepath.Join(p.root, contentDir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if info, err := os.Stat(f); err == nil { // else it has just become complete
				sum += info.Size()
			}
		}
	}
	return sum
}

// pulled is what a pull brings: all but what the other platform alone has.
func (s *store) pulled() (sum int64) {
	for _, data := range s.blobs {
		if !bytes.Contains(data, []byte(`"architecture":"riscv64","os":"linux"}`)) ||
			bytes.Contains(data, []byte(`"manifests"`)) {
			sum += int64(len(data))
		}
	}
	return sum - int64(len(s.manifestOf("riscv64")))
}

func (s *store) manifestOf(arch string) []byte {
	var index struct {
		Manifests []struct {
			Digest   string
			Platform struct{ Architecture string }
		}
	}
	if err := json.Unmarshal(s.blobs[s.tag], &index); err != nil {
		s.t.Fatal(err)
	}
	for _, m := range index.Manifests {
		if m.Platform.Architecture == arch {
			return s.blobs[m.Digest]
		}
	}
	return nil
}

// TestPull: the image of this platform comes from the registry, once; a second pull brings nothing.
func TestPull(t *testing.T) {
	s := newStore(t, 50_000, 20_000)
	p := open(t, t.TempDir(), fmt.Sprintf("server = %q\n", serve(t, s)))
	defer p.close()
	for range 2 {
		if err := p.pull(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		if n := stored(t, p); n != s.pulled() {
			t.Errorf("%d bytes are stored, want %d", n, s.pulled())
		}
	}
	if n := s.count("/blobs/"); n != 3 {
		t.Errorf("blobs were asked for %d times, want once each: %q", n, s.asked)
	}
	if _, err := os.Stat(filepath.Join(p.root, contentDir, "blobs", "sha256", s.layer()[7:])); err != nil {
		t.Errorf("the layer is not where containerd keeps it: %v", err)
	}
}

// TestMirror: the mirror is asked before the registry, for everything, and the registry only for what it refuses.
func TestMirror(t *testing.T) {
	s := newStore(t, 50_000)
	registry := serve(t, s)
	all := newStore(t, 50_000)
	none := newStore(t)
	none.hold = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, `{"errors":[{"code":"BLOB_UNKNOWN"}]}`, http.StatusNotFound)
		return true
	}
	for name, c := range map[string]struct {
		mirror *store
		blobs  int // that the registry is asked for
	}{"has all": {all, 0}, "has nothing": {none, 2}} {
		before := s.count("/blobs/")
		p := open(t, t.TempDir(), fmt.Sprintf("server = %q\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", registry,
			serve(t, c.mirror)))
		if err := p.pull(t.Context(), ref); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := s.count("/blobs/") - before; n != c.blobs || c.mirror.count("/blobs/") != 2 ||
			c.mirror.count("/manifests/v1") == 0 {
			t.Errorf("%s: the registry was asked for %d blobs, want %d; the mirror: %q", name, n, c.blobs, c.mirror.asked)
		}
		_ = p.close()
	}
}

// TestResume: what was fetched before a pull ended stays on disk, and the next process goes on behind it. containerd
// writes a blob in steps of 1 MiB.
func TestResume(t *testing.T) {
	const step = 1 << 20
	s := newStore(t, 3*step)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.hold = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, s.layer()) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(3*step))
		_, _ = w.Write(s.blobs[s.layer()][:step])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		<-r.Context().Done()
		return true
	}
	url, root := serve(t, s), t.TempDir()
	p := open(t, root, fmt.Sprintf("server = %q\n", url))
	go func() {
		for stored(t, p) < step {
			runtime.Gosched()
		}
		cancel()
	}()
	if err := p.pull(ctx, ref); err == nil {
		t.Fatal("a pull that was ended says that it has everything")
	}
	_ = p.close()
	s.mu.Lock()
	s.hold = nil
	s.mu.Unlock()
	p = open(t, root, fmt.Sprintf("server = %q\n", url))
	defer p.close()
	if n := stored(t, p); n < step || n >= s.pulled() {
		t.Fatalf("%d bytes are left of the first pull", n)
	}
	if err := p.pull(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if n := s.count(fmt.Sprintf("/blobs/%s bytes=%d-", s.layer(), step)); n != 1 || stored(t, p) != s.pulled() {
		t.Errorf("the pull did not go on behind what was there: %q", s.asked)
	}
}

// TestThreeAtOnce: no more blobs are fetched at the same time.
func TestThreeAtOnce(t *testing.T) {
	s := newStore(t, 5000, 5001, 5002, 5003, 5004, 5005)
	var mu sync.Mutex
	now, most := 0, 0
	three := make(chan struct{})
	enough := sync.OnceFunc(func() { close(three) })
	s.hold = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		mu.Lock()
		now++
		most = max(most, now)
		if now == downloads {
			enough()
		}
		mu.Unlock()
		<-three
		mu.Lock()
		now--
		mu.Unlock()
		return false
	}
	p := open(t, t.TempDir(), fmt.Sprintf("server = %q\n", serve(t, s)))
	defer p.close()
	if err := p.pull(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if most != downloads {
		t.Errorf("%d were fetched at once, want %d", most, downloads)
	}
}

// TestWatchman: a pull that asks and gets no byte is given up in the end. One that gets some, or asks nobody, is not.
func TestWatchman(t *testing.T) {
	const patience = 5 * time.Minute
	for name, c := range map[string]struct {
		times int // bytes that come, before no more do
		asks  bool
		want  bool
	}{
		"slow, and alive": {times: 10, asks: true},
		"still":           {times: 0, asks: true, want: true},
		"still after all": {times: 3, asks: true, want: true},
		"asks nobody":     {},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, giveUp := context.WithCancelCause(t.Context())
			w := newWatchman(patience)
			ended := w.watch(ctx, giveUp)
			began := time.Now()
			if c.asks {
				rt := w.around(tripper(func(*http.Request) (*http.Response, error) {
					return &http.Response{Body: io.NopCloser(drip{ctx, patience - time.Second})}, nil
				}))
				resp, err := rt.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
				if err != nil {
					t.Fatal(err)
				}
				for range c.times {
					_, _ = resp.Body.Read(make([]byte, 1))
				}
				if !c.want {
					_ = resp.Body.Close()
				}
			}
			time.Sleep(2 * patience)
			if gone := context.Cause(ctx) != nil; gone != c.want {
				t.Errorf("%s: given up: %v after %v", name, gone, time.Since(began))
			}
			giveUp(nil)
			<-ended
		})
	}
}

// drip is a body that brings a byte now and then.
type drip struct {
	ctx   context.Context
	every time.Duration
}

func (d drip) Read(b []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(d.every):
		return copy(b, "x"), nil
	}
}

// TestHandler: what is no reference is refused, and an image that nobody has is told.
func TestHandler(t *testing.T) {
	p := open(t, t.TempDir(), fmt.Sprintf("server = %q\n", serve(t, newStore(t, 5000))))
	defer p.close()
	for path, want := range map[string]int{
		"/pull": http.StatusBadRequest,
		"/pull?image=" + strings.Repeat("a", 2000): http.StatusBadRequest,
		"/pull?image=nothing":                      http.StatusBadGateway,
		"/pull?image=registry.weir.test/a:no":      http.StatusBadGateway,
		"/pull?image=" + ref:                       http.StatusOK,
	} {
		w := httptest.NewRecorder()
		p.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
