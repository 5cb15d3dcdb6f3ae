package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/limit"
)

// chunk is what is passed on at a time.
const chunk = 64 << 10

// errWrong is of a member that served other bytes than those of the digest.
var errWrong = errors.New("its bytes are not those of the digest")

// reader passes on what members of the pool have.
type reader struct {
	pool    Pool
	metrics *Metrics
	clock   clock.WithDelayedExecution
	report  func(exchange.ReadReport)
	quiet   *limit.Quiet
	logger  *slog.Logger

	mu    sync.Mutex
	liars map[string]time.Time // nodes that served wrong bytes, of any digest, and when
}

const (
	liarFor  = time.Hour // that nothing is read from a node which served wrong bytes
	maxLiars = 500       // as many as members of a pool
)

// errLiar is of a node that served wrong bytes before, maybe of another digest.
var errLiar = errors.New("it served wrong bytes lately")

// lies notes that a node served wrong bytes.
func (r *reader) lies(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.liars == nil || len(r.liars) >= maxLiars {
		r.liars = map[string]time.Time{}
	}
	r.liars[node] = r.clock.Now()
}

// lied reports whether a node served wrong bytes lately.
func (r *reader) lied(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.liars[node]
	return ok && r.clock.Now().Sub(at) < liarFor
}

// follow serves what a member has, or is pulling. An error: nothing was written, and somebody else may be asked. An
// answer that has begun and breaks off ends short: containerd asks again for the rest, here first. What a member is
// pulling begins before there is a byte of it.
func (r *reader) follow(w http.ResponseWriter, req *http.Request, ref reference, from exchange.Holder) error {
	if r.lied(from.Node) {
		return errLiar
	}
	began := r.clock.Now()
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	stalled := r.clock.AfterFunc(exchange.PullSlow+looks, cancel) // the member itself notices a stall, and breaks off
	defer stalled.Stop()
	part := req.Header.Get("Range")
	if ref.manifest {
		part = ""
	}
	method := req.Method
	if ref.manifest {
		method = http.MethodGet // its type is in it
	}
	resp, err := r.pool.Open(ctx, from, method, ref.digest, part)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	name := byPool
	if from.Growing {
		name = byGrowing
	}
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		w.Header().Set("Content-Range", resp.Header.Get("Content-Range"))
		r.metrics.count("refused")
		refuse(w, resp.StatusCode, codeUnable, fmt.Sprintf("Range %q: beyond the end", part))
		return nil
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent:
		return fmt.Errorf("node %s answers %s", from.Node, resp.Status)
	case resp.ContentLength < 0:
		return fmt.Errorf("node %s does not say how much it has", from.Node)
	case resp.StatusCode == http.StatusPartialContent && part == "":
		return fmt.Errorf("node %s answers with a part, and was asked for all", from.Node)
	}
	read := func(p []byte) (int, error) {
		n, err := resp.Body.Read(p)
		stalled.Reset(exchange.PullSlow + looks)
		return n, err
	}
	if ref.manifest {
		return r.followManifest(w, req, ref, from, readFunc(read), name)
	}
	if method == http.MethodHead || resp.ContentLength == 0 {
		r.metrics.count(name)
		r.begin(w, resp)
		return nil
	}
	if from.Growing {
		r.begin(prompt{w}, resp)
	}
	buffer := make([]byte, min(chunk, resp.ContentLength))
	n, err := read(buffer)
	if n == 0 && !from.Growing {
		return fmt.Errorf("node %s sends nothing: %w", from.Node, err)
	}
	var sum hash.Hash // nil: it is a part
	if resp.StatusCode == http.StatusOK {
		sum = sha256.New()
	}
	if !from.Growing {
		r.begin(w, resp)
	}
	bytes := r.metrics.Bytes.WithLabelValues(name)
	for done := int64(0); ; n, err = read(buffer) {
		if sum != nil {
			sum.Write(buffer[:n])
		}
		if _, broken := w.Write(buffer[:n]); broken != nil {
			r.metrics.count("failed")
			return nil // the client is gone
		}
		bytes.Add(float64(n))
		switch done += int64(n); {
		case done >= resp.ContentLength:
			r.metrics.count(name)
			if sum != nil && exchange.Digest(sum.Sum(nil)) != ref.digest {
				r.accuse(ref.digest, from)
			}
			return nil
		case err != nil:
			r.breaks(req, ref, from, began, err)
		}
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// begin writes the head of an answer that a member began.
func (r *reader) begin(w http.ResponseWriter, resp *http.Response) {
	for _, name := range []string{"Content-Length", "Content-Range", "Accept-Ranges"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.Header().Set("Content-Type", blobType)
	w.WriteHeader(resp.StatusCode)
}

// followManifest reads a manifest as a whole, and serves it if it is what the digest says.
func (r *reader) followManifest(w http.ResponseWriter, req *http.Request, ref reference, from exchange.Holder,
	body io.Reader, name string) error {
	raw, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxManifest:
		return fmt.Errorf("%v has more than %d bytes, which is no manifest", ref.digest, maxManifest)
	case exchange.Digest(sha256.Sum256(raw)) != ref.digest:
		r.metrics.wrong.Inc()
		r.lies(from.Node)
		return errWrong
	}
	if err := serveManifest(w, req, raw, r.metrics.Bytes.WithLabelValues(name)); err != nil {
		return err
	}
	r.metrics.count(name)
	return nil
}

// breaks ends an answer short, and has the pool know who was read from. It does not return.
func (r *reader) breaks(req *http.Request, ref reference, from exchange.Holder, began time.Time, err error) {
	r.metrics.count("failed")
	if req.Context().Err() == nil {
		r.quiet.Say(slog.LevelInfo, "breaks "+from.Node, "a member of the pool broke off: containerd asks for the rest",
			"node", from.Node, "digest", ref.digest, "err", err)
		r.report(exchange.ReadReport{Digest: ref.digest, Node: from.Node, Age: max(r.clock.Now().Sub(began), 0)})
	}
	panic(http.ErrAbortHandler)
}

// accuse has the pool know of a member that served wrong bytes. containerd sees the digest itself, and refuses them.
func (r *reader) accuse(d exchange.Digest, from exchange.Holder) {
	r.metrics.wrong.Inc()
	r.lies(from.Node)
	r.logger.Warn("a member of the pool serves wrong bytes of images: this node reads nothing from it for an hour",
		"node", from.Node, "digest", d)
	r.report(exchange.ReadReport{Digest: d, Node: from.Node, Wrong: true})
}
