package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/images/desk"
	"github.com/weir-edge/weir/impl/limit"
)

// Bounds of what a mirror does at a time.
const (
	maxRequests = 64 // under way; containerd pulls three layers of an image at a time
	tries       = 4  // members that are asked for one answer; each may take desk.Stall
)

// Pool is the way to the other members. Both methods may be called by many.
type Pool interface {
	// Ask asks the desk of the pool. It takes two seconds at most.
	Ask(ctx context.Context, a desk.Ask) (desk.Answer, error)
	// Open reads from a member, from which a header Range asks for a part; "": for all. The caller closes the body.
	Open(ctx context.Context, from desk.Holder, method string, d desk.Digest, part string) (*http.Response, error)
}

// Config is what a Mirror is made of.
type Config struct {
	Node    string
	Store   *Store
	Pool    Pool                       // nil: the node is in none
	Away    func() bool                // the cloud is away
	Allowed func(registry string) bool // what the pool shares; nil: all
	// Judged registries decide about each pull themselves, for their images need a secret: while the cloud is there they
	// are asked for each tag, and not the pool; nil: none are.
	Judged  func(registry string) bool
	File    string // where tags are kept; "": they are not
	Metrics *Metrics
	Clock   clock.WithTickerAndDelayedExecution
	Logger  *slog.Logger
}

// Mirror is a registry mirror for the containerd of one node: read only, and without a credential. It never calls a
// registry: what nobody in the pool has, it answers with 404, and containerd asks the registry itself.
type Mirror struct {
	Config
	account *account
	tags    *tagBook
	slots   limit.Slots
	quiet   *limit.Quiet
}

// New makes a mirror that has said nothing to its pool yet.
func New(c Config) *Mirror {
	m := &Mirror{Config: c, slots: limit.Slots{Each: maxRequests, Sum: maxRequests}}
	m.account = newAccount(m)
	m.tags = openTags(c.File, c.Clock, c.Logger)
	m.quiet = limit.NewQuiet(c.Clock, c.Logger)
	return m
}

// Pulling reports whether this node is to pull a digest: see Shown.
func (m *Mirror) Pulling(d desk.Digest) bool { return m.account.pulling(d) }

// ServeHTTP implements http.Handler.
func (m *Mirror) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		m.refuse(w, http.StatusMethodNotAllowed, codeUnable, "this is a mirror: it is only read")
		return
	}
	if req.URL.Path == "/v2/" || req.URL.Path == "/v2" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
		return
	}
	ref, err := parseReference(req.URL)
	if wrong := (*nameError)(nil); errors.As(err, &wrong) {
		m.refuse(w, http.StatusBadRequest, wrong.code, wrong.message)
		return
	}
	if err := checkRange(req.Header.Get("Range")); err != nil {
		m.refuse(w, http.StatusRequestedRangeNotSatisfiable, codeUnable, err.Error())
		return
	}
	if m.Allowed != nil && !m.Allowed(ref.registry) {
		m.refuse(w, http.StatusNotFound, codeDenied, fmt.Sprintf("images of %q are not shared in this pool", ref.registry))
		return
	}
	if m.slots.Enter("") != "" { // containerd asks the registry then
		m.refuse(w, http.StatusServiceUnavailable, codeMany,
			fmt.Sprintf("%d requests are under way, which are all that there may be", maxRequests))
		return
	}
	defer m.slots.Leave("")
	switch {
	case ref.tag != "":
		m.serveTag(w, req, ref)
	case ref.manifest:
		m.learn(req, ref)
		if req.Method == http.MethodHead && !m.away() { // a pull by digest begins, and the registry says whether it may
			m.count("pull")
			refuse(w, http.StatusNotFound, codeManifest, "ask the registry whether "+ref.digest.String()+" may be pulled")
			return
		}
		m.serve(w, req, ref)
	default:
		m.serve(w, req, ref)
	}
}

func (m *Mirror) refuse(w http.ResponseWriter, status int, code, message string) {
	m.count("refused")
	refuse(w, status, code, message)
}

func (m *Mirror) away() bool { return m.Away != nil && m.Away() }

func (m *Mirror) count(outcome string) { m.Metrics.requests.WithLabelValues(outcome).Inc() }

// serve answers with content, of this node or of the pool. 404 lets containerd ask the registry.
func (m *Mirror) serve(w http.ResponseWriter, req *http.Request, ref reference) {
	w.Header().Set("Docker-Content-Digest", ref.digest.String())
	if m.serveOwn(w, req, ref) {
		m.count("own")
		return
	}
	outcome := "alone"
	for range tries {
		if m.Pool == nil || req.Context().Err() != nil {
			break
		}
		answer, err := m.account.ask(req.Context(), desk.Ask{Want: &ref.digest})
		if err != nil {
			m.quiet.Say(slog.LevelInfo, "desk", "images are not shared: nobody in the pool can be asked who has them",
				"err", err)
			break
		}
		if answer.Pull {
			m.account.begin(ref.digest)
			outcome = "pull"
			break
		}
		m.account.end(ref.digest)
		for _, from := range answer.From {
			err := m.follow(w, req, ref, from)
			if err == nil {
				return
			}
			m.quiet.Say(slog.LevelInfo, "member "+from.Node, "content of images cannot be read from a member of the pool",
				"node", from.Node, "digest", ref.digest, "err", err)
			m.account.report(desk.Report{Digest: ref.digest, Node: from.Node, Wrong: errors.Is(err, errWrong)})
		}
	}
	m.count(outcome)
	code := codeBlob
	if ref.manifest {
		code = codeManifest
	}
	refuse(w, http.StatusNotFound, code, "nobody in the pool has "+ref.digest.String()+": ask the registry")
}

// serveOwn serves what this node has; false: it does not have it.
func (m *Mirror) serveOwn(w http.ResponseWriter, req *http.Request, ref reference) bool {
	if !ref.manifest {
		return serveStored(w, req, m.Store, ref.digest, m.Metrics.Bytes.WithLabelValues("own"))
	}
	body, ok := m.Store.readManifest(ref.digest)
	return ok && m.serveManifest(w, req, body, "own") == nil
}

// serveManifest serves a manifest, which is in memory.
func (m *Mirror) serveManifest(w http.ResponseWriter, req *http.Request, body []byte, from string) error {
	media, err := typeOf(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", media)
	out := &counted{ResponseWriter: w, count: m.Metrics.Bytes.WithLabelValues(from), ctx: req.Context()}
	if req.Method == http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	http.ServeContent(out, req, "", time.Time{}, bytes.NewReader(body))
	return nil
}
