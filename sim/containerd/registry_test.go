package containerd

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// registry serves one repository, app, at a rate. It stands for the far end of a link.
type registry struct {
	*httptest.Server
	rate int // bytes a second of all answers together; 0: no bound

	mu    sync.Mutex
	blobs map[string]blob
	tags  map[string]string
	store string // URL of the server that blobs are redirected to; "": they are not

	refuses   atomic.Bool  // every request
	served    atomic.Int64 // bytes of bodies
	questions atomic.Int64 // for tags
	ranges    atomic.Int64 // that began behind the first byte
	turn      sync.Mutex   // the link: one chunk at a time
}

// buffer is what a socket of the link may hold.
const buffer = 16 << 10

type blob struct {
	media string
	body  []byte
}

func newRegistry(t *testing.T, rate int) *registry {
	r := &registry{rate: rate, blobs: map[string]blob{}, tags: map[string]string{}}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ConnState = func(c net.Conn, s http.ConnState) { // what is in a buffer has not crossed a link
		if t, ok := c.(*net.TCPConn); ok && s == http.StateNew {
			if err := t.SetWriteBuffer(buffer); err != nil {
				t.Close()
			}
		}
	}
	r.Start()
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// ref is what a node pulls.
func (r *registry) ref(tag string) string {
	return strings.TrimPrefix(r.URL, "http://") + "/app:" + tag
}

func (r *registry) put(media string, body []byte) map[string]any {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[digest] = blob{media, body}
	return map[string]any{"mediaType": media, "digest": digest, "size": len(body)}
}

// platform has a tag lead to an index of one image for an architecture that no node has.
func (r *registry) platform(tag, architecture string) {
	const oci = "application/vnd.oci.image."
	child := r.put(oci+"manifest.v1+json", []byte(`{"schemaVersion":2,"config":{},"layers":[]}`))
	child["platform"] = map[string]any{"os": "linux", "architecture": architecture}
	index, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": []any{child},
	})
	top := r.put(oci+"index.v1+json", index)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags[tag] = top["digest"].(string)
}

// image makes one with layers of some sizes, and has a tag lead to it. It returns its bytes and the digest of the
// index.
func (r *registry) image(tag string, seed uint64, layers ...int) (size int64, digest string) {
	const oci = "application/vnd.oci.image."
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	config, _ := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "seed": seed})
	manifest := map[string]any{
		"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": r.put(oci+"config.v1+json", config),
	}
	size = int64(len(config))
	var all []any
	for _, n := range layers {
		body := make([]byte, n)
		_, _ = rng.Read(body)
		all = append(all, r.put(oci+"layer.v1.tar", body))
		size += int64(n)
	}
	manifest["layers"] = all
	text, _ := json.Marshal(manifest)
	index, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": []any{r.put(oci+"manifest.v1+json", text)},
	})
	top := r.put(oci+"index.v1+json", index)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags[tag] = top["digest"].(string)
	return size + int64(len(text)+len(index)), r.tags[tag]
}

// ServeHTTP implements http.Handler.
func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.refuses.Load() {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	kind, last, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v2/app/"), "/")
	r.mu.Lock()
	if d, ok := r.tags[last]; ok && kind == "manifests" {
		r.questions.Add(1)
		last = d
	}
	b, ok := r.blobs[last]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, req)
		return
	}
	if r.store != "" && kind == "blobs" && !strings.HasSuffix(r.store, req.Host) {
		http.Redirect(w, req, r.store+req.URL.Path+"?signature=secret", http.StatusTemporaryRedirect)
		return
	}
	if from := req.Header.Get("Range"); from != "" && !strings.HasPrefix(from, "bytes=0-") {
		r.ranges.Add(1)
	}
	w.Header().Set("Content-Type", b.media)
	w.Header().Set("Docker-Content-Digest", last)
	http.ServeContent(&slow{w, r}, req, "", time.Time{}, bytes.NewReader(b.body))
}

// slow writes at the rate of the link.
type slow struct {
	http.ResponseWriter
	r *registry
}

func (s *slow) Write(p []byte) (done int, err error) {
	for len(p) > 0 {
		n := min(len(p), 16<<10)
		s.r.turn.Lock()
		if s.r.rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(s.r.rate)) // the link is the thing that is simulated
		}
		n, err = s.ResponseWriter.Write(p[:n])
		s.r.turn.Unlock()
		s.r.served.Add(int64(n))
		done += n
		if err != nil {
			return done, err
		}
		if f, ok := s.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		p = p[n:]
	}
	return done, nil
}

var _ io.Writer = (*slow)(nil)
