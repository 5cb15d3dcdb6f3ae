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

	"github.com/weir-edge/weir/impl/images/desk"
)

// chunk is what is passed on at a time.
const chunk = 64 << 10

// errWrong is of a member that served other bytes than those of the digest.
var errWrong = errors.New("its bytes are not those of the digest")

// follow serves what a member has, or is pulling. An error: nothing was written, and somebody else may be asked. An
// answer that has begun and breaks off ends short: containerd asks again for the rest, here first.
func (m *Mirror) follow(w http.ResponseWriter, req *http.Request, ref reference, from desk.Holder) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	stalled := m.Clock.AfterFunc(desk.Slow+looks, cancel) // the member itself notices a stall, and breaks off
	defer stalled.Stop()
	part := req.Header.Get("Range")
	if ref.manifest {
		part = ""
	}
	method := req.Method
	if ref.manifest {
		method = http.MethodGet // its type is in it
	}
	resp, err := m.Pool.Open(ctx, from, method, ref.digest, part)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	name := "pool"
	if from.Growing {
		name = "growing"
	}
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		w.Header().Set("Content-Range", resp.Header.Get("Content-Range"))
		m.refuse(w, resp.StatusCode, codeUnable, fmt.Sprintf("Range %q: beyond the end", part))
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
		stalled.Reset(desk.Slow + looks)
		return n, err
	}
	if ref.manifest {
		return m.followManifest(w, req, ref, readFunc(read), name)
	}
	if method == http.MethodHead || resp.ContentLength == 0 {
		m.count(name)
		m.begin(w, resp)
		return nil
	}
	buffer := make([]byte, min(chunk, resp.ContentLength))
	n, err := read(buffer)
	if n == 0 {
		return fmt.Errorf("node %s sends nothing: %w", from.Node, err)
	}
	var sum hash.Hash // nil: it is a part
	if resp.StatusCode == http.StatusOK {
		sum = sha256.New()
	}
	m.begin(w, resp)
	bytes := m.Metrics.Bytes.WithLabelValues(name)
	for done := int64(0); ; n, err = read(buffer) {
		if sum != nil {
			sum.Write(buffer[:n])
		}
		if _, broken := w.Write(buffer[:n]); broken != nil {
			m.count("failed")
			return nil // the client is gone
		}
		bytes.Add(float64(n))
		switch done += int64(n); {
		case done >= resp.ContentLength:
			m.count(name)
			if sum != nil && desk.Digest(sum.Sum(nil)) != ref.digest {
				m.accuse(ref.digest, from)
			}
			return nil
		case err != nil:
			m.breaks(req, ref, from, err)
		}
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// begin writes the head of an answer that a member began.
func (m *Mirror) begin(w http.ResponseWriter, resp *http.Response) {
	for _, name := range []string{"Content-Length", "Content-Range", "Accept-Ranges"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.Header().Set("Content-Type", blobType)
	w.WriteHeader(resp.StatusCode)
}

// followManifest reads a manifest as a whole, and serves it if it is what the digest says.
func (m *Mirror) followManifest(w http.ResponseWriter, req *http.Request, ref reference, body io.Reader,
	name string) error {
	raw, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxManifest:
		return fmt.Errorf("%v has more than %d bytes, which is no manifest", ref.digest, maxManifest)
	case desk.Digest(sha256.Sum256(raw)) != ref.digest:
		m.Metrics.wrong.Inc()
		return errWrong
	}
	if err := m.serveManifest(w, req, raw, name); err != nil {
		return err
	}
	m.count(name)
	return nil
}

// breaks ends an answer short, and has the pool know who was read from. It does not return.
func (m *Mirror) breaks(req *http.Request, ref reference, from desk.Holder, err error) {
	m.count("failed")
	if req.Context().Err() == nil {
		m.quiet.Say(slog.LevelInfo, "breaks "+from.Node, "a member of the pool broke off: containerd asks for the rest",
			"node", from.Node, "digest", ref.digest, "err", err)
		m.account.report(desk.Report{Digest: ref.digest, Node: from.Node})
	}
	panic(http.ErrAbortHandler)
}

// accuse has the pool know of a member that served wrong bytes. containerd sees the digest itself, and refuses them.
func (m *Mirror) accuse(d desk.Digest, from desk.Holder) {
	m.Metrics.wrong.Inc()
	m.Logger.Warn("a member of the pool serves wrong bytes of images: it is not read from for this digest",
		"node", from.Node, "digest", d)
	m.account.report(desk.Report{Digest: d, Node: from.Node, Wrong: true})
}
