package filter

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// Filters are those that are on. See the package comment.
type Filters struct {
	topology
	rules map[use][]rule
}

// New brings back what is known of topology.
func New(c Config) (*Filters, error) {
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	if c.Cloud == nil || c.Node == "" || c.Pool == "" {
		return nil, errors.New("filter: it needs Cloud, Node and Pool")
	}
	c.Clock, c.Logger = cmp.Or[clock.Clock](c.Clock, clock.RealClock{}), cmp.Or(c.Logger, slog.Default())
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return &Filters{topology: newTopology(c), rules: rules}, nil
}

// plain reports whether the answer to a request is objects.
func plain(asked *request.Request) bool {
	return asked.Reads() && !asked.Upgrade && asked.Subresource == ""
}

// match reports whether a request is filtered.
func (f *Filters) match(req *http.Request, asked *request.Request) (q reading, ok bool) {
	if !plain(asked) {
		return q, false
	}
	q = reading{asked: asked, use: use{store.ComponentOf(req.UserAgent(), "", ""), asked.Resource}}
	if q.rules = f.rules[q.use]; len(q.rules) == 0 {
		return q, false
	}
	q.client = clientOf(req, asked)
	return q, true
}

// clientOf names a client of a list and of the watch that follows.
func clientOf(req *http.Request, asked *request.Request) string {
	return strings.Join([]string{
		who(req), req.UserAgent(), asked.Path, asked.Query.Get("labelSelector"), asked.Query.Get("fieldSelector"),
	}, "\x00")
}

// who tells callers apart by what they show, so that nobody is taken for another who calls itself the same. One whose
// token was renewed is another: what it has is then known by its version, as after a restart.
func who(req *http.Request) string {
	h := sha256.New()
	for _, v := range req.Header.Values("Authorization") {
		_, _ = h.Write([]byte(v))
	}
	if req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
		_, _ = h.Write(req.TLS.PeerCertificates[0].RawSubject)
	}
	return string(h.Sum(nil))
}

// Serve lets next answer a request, through the filters that are on for it.
func (f *Filters) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request,
	next func(http.ResponseWriter, *http.Request)) {
	if f == nil || len(f.rules) == 0 {
		next(w, req)
		return
	}
	q, ok := f.match(req, asked)
	if !ok {
		next(w, req)
		return
	}
	through(w, req, &f.topology, q, next)
}
