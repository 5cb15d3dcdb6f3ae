package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/limit"
)

// Bounds of what a mirror does at a time.
const (
	maxRequests = 64 // under way; containerd pulls three layers of an image at a time
	tries       = 4  // members that are asked for one answer; each may take exchange.PullStall
)

// Config is what a Mirror is made of.
type Config struct {
	Node  string
	Store *Store
	Pool  Pool        // nil: the node is in none
	Away  func() bool // the cloud is away
	// Left reports the same, and makes sure first: it asks the cloud, and waits until it knows. nil: Away knows.
	Left    func(context.Context) bool
	Allowed func(registry string) bool // what the pool shares; nil: all
	// Judged registries decide about each pull themselves, for their images need a secret: while the cloud is there they
	// are asked for each tag, and not the pool; nil: none are.
	Judged  func(registry string) bool
	Off     func() bool // the pool shares nothing: it is not told what the node has; nil: it shares
	File    string      // where tags are kept; "": they are not
	Metrics *Metrics
	Clock   clock.WithTickerAndDelayedExecution
	Logger  *slog.Logger
}

// Mirror is a registry mirror for the containerd of one node: read only, and without a credential. It never calls a
// registry: what nobody in the pool has, it answers with 404, and containerd asks the registry itself.
type Mirror struct {
	Config
	account *account
	reads   *reader
	tags    *resolver
	slots   limit.Slots
	quiet   *limit.Quiet
}

// New makes a mirror that has said nothing to its pool yet.
func New(c Config) *Mirror {
	m := &Mirror{Config: c, slots: limit.Slots{Each: maxRequests, Sum: maxRequests}}
	m.quiet = limit.NewQuiet(c.Clock, c.Logger)
	book := openTags(c.File, c.Clock, c.Logger)
	m.account = &account{
		store: c.Store, pool: c.Pool, clock: c.Clock, quiet: m.quiet, words: m.words, poke: make(chan struct{}, 1),
		pulls: map[exchange.Digest]*pulled{}, off: m.off, seen: c.Metrics,
	}
	m.reads = &reader{
		pool: c.Pool, metrics: c.Metrics, clock: c.Clock, report: m.account.report, quiet: m.quiet, logger: c.Logger,
	}
	m.tags = &resolver{
		tagBook: book, account: m.account, timer: c.Clock, away: m.away, left: c.Left, judged: c.Judged,
		listed: c.Store.listed,
	}
	return m
}

// Pulling reports whether this node is to pull a digest: see Shown.
func (m *Mirror) Pulling(d exchange.Digest) bool { return m.account.pulling(d) }

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
	if !m.allowed(ref.registry) {
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
	default:
		if ref.manifest {
			m.tags.see(req, ref)
		}
		// A pull by digest begins, and the registry says whether it may. If that refuses, or does not answer, containerd
		// asks for a blob of that digest: a yes would replace what the registry said, and have the wrong type.
		if req.Method == http.MethodHead && !m.away() {
			m.Metrics.count("pull")
			refuse(w, http.StatusNotFound, codeManifest, "ask the registry whether "+ref.digest.String()+" may be pulled")
			return
		}
		m.serve(w, req, ref)
	}
}

func (m *Mirror) refuse(w http.ResponseWriter, status int, code, message string) {
	m.Metrics.count("refused")
	refuse(w, status, code, message)
}

func (m *Mirror) allowed(registry string) bool { return m.Allowed == nil || m.Allowed(registry) }

// words are what registries said of tags to this node, of those whose images are shared.
func (m *Mirror) words() []exchange.Resolution {
	return slices.DeleteFunc(m.tags.words(), func(r exchange.Resolution) bool {
		registry, _, _ := strings.Cut(r.Tag, "/")
		return !m.allowed(registry)
	})
}

func (m *Mirror) off() bool { return m.Off != nil && m.Off() }

func (m *Mirror) away() bool { return m.Away != nil && m.Away() }

// serve answers with content, of this node or of the pool. 404 lets containerd ask the registry.
func (m *Mirror) serve(w http.ResponseWriter, req *http.Request, ref reference) {
	w.Header().Set("Docker-Content-Digest", ref.digest.String())
	if m.serveOwn(w, req, ref) {
		m.Metrics.count(byOwn)
		return
	}
	outcome := "alone"
	for range tries {
		if m.Pool == nil || req.Context().Err() != nil {
			break
		}
		answer, err := m.account.ask(req.Context(), exchange.ImagesAsk{Want: &ref.digest})
		if err != nil {
			m.quiet.Say(slog.LevelInfo, "desk", "images are not shared: nobody in the pool can be asked who has them",
				"err", err)
			break
		}
		if answer.Pull {
			m.account.begin(ref.digest, false)
			outcome = "pull"
			break
		}
		m.account.end(ref.digest)
		for _, from := range answer.From {
			err := m.reads.follow(w, req, ref, from)
			if err == nil {
				return
			}
			m.quiet.Say(slog.LevelInfo, "member "+from.Node, "content of images cannot be read from a member of the pool",
				"node", from.Node, "digest", ref.digest, "err", err)
			m.account.report(exchange.ReadReport{Digest: ref.digest, Node: from.Node, Wrong: errors.Is(err, errWrong)})
		}
	}
	if outcome == "alone" && m.Pool != nil {
		m.account.begin(ref.digest, true)
	}
	m.Metrics.count(outcome)
	code := codeBlob
	if ref.manifest {
		code = codeManifest
	}
	refuse(w, http.StatusNotFound, code, "nobody in the pool has "+ref.digest.String()+": ask the registry")
}

// serveOwn serves what this node has; false: it does not have it.
func (m *Mirror) serveOwn(w http.ResponseWriter, req *http.Request, ref reference) bool {
	if !ref.manifest {
		return serveStored(w, req, m.Store, ref.digest, m.Metrics.Bytes.WithLabelValues(byOwn))
	}
	body, ok := m.Store.readManifest(ref.digest)
	return ok && serveManifest(w, req, body, m.Metrics.Bytes.WithLabelValues(byOwn)) == nil
}

// serveTag answers what a tag leads to, if the pool knows it: see resolver.resolve. Else containerd asks the registry.
func (m *Mirror) serveTag(w http.ResponseWriter, req *http.Request, ref reference) {
	if ref.registry != "" && exchange.CheckTag(ref.name()) == nil {
		if d, from := m.tags.resolve(req, ref); from != "" {
			m.tags.exclude(ref, d)
			m.Metrics.tags.WithLabelValues(from).Inc()
			ref.digest, ref.manifest = d, true
			m.serve(w, req, ref)
			return
		}
		m.tags.ask(ref)
	}
	m.Metrics.tags.WithLabelValues("cloud").Inc()
	refuse(w, http.StatusNotFound, codeManifest, "tag "+ref.tag+": ask the registry")
}

// Standing is how a mirror stands in its pool.
type Standing struct {
	Desk  bool `json:"desk"`  // the pool knows what this node holds
	Holds int  `json:"holds"` // blobs
	Pulls int  `json:"pulls"` // that this node asks registries for, for the pool
	// Barred are members that the pool does not listen to about tags: two others contradicted them.
	Barred []string `json:"barred,omitempty"`
}

// Standing is how it stands now.
func (m *Mirror) Standing() Standing {
	a := m.account
	a.mu.Lock()
	defer a.mu.Unlock()
	return Standing{a.desk != "", len(a.holds), a.shown(), slices.Clone(a.barred)}
}

// Run tells the pool what this node has, until ctx ends.
func (m *Mirror) Run(ctx context.Context) error {
	if m.Pool == nil {
		<-ctx.Done()
		return nil
	}
	tick := m.Clock.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		m.account.look(ctx)
		select {
		case <-tick.C():
		case <-m.account.poke:
		case <-ctx.Done():
		}
	}
	return nil
}
