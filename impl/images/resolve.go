package images

import (
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/images/desk"
)

// pollTag is how often a desk is asked for what another node asks a registry.
const pollTag = 250 * time.Millisecond

// serveTag answers what a tag leads to, if the pool has heard it from the registry within a minute, or the cloud is
// away. Else containerd asks the registry.
func (m *Mirror) serveTag(w http.ResponseWriter, req *http.Request, ref reference) {
	if ref.registry != "" && desk.CheckTag(ref.name()) == nil {
		if d, from := m.resolve(req, ref); from != "" {
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

// resolve finds what a tag leads to, and by whose word; "": the registry is to be asked.
func (m *Mirror) resolve(req *http.Request, ref reference) (d desk.Digest, from string) {
	away := m.away()
	if !away && m.Judged != nil && m.Judged(ref.registry) {
		return d, ""
	}
	end := m.Clock.Now().Add(desk.Resolve)
	for m.Pool != nil {
		answer, err := m.account.ask(req.Context(), desk.Ask{Tag: ref.name()})
		if err != nil {
			break
		}
		r := answer.Resolution
		if r != nil {
			m.tags.learn(ref.name(), r.Digest, m.Clock.Now().Add(-r.Age))
		}
		switch {
		case r != nil && r.Age <= desk.Fresh:
			return r.Digest, "pool"
		case away && r != nil:
			return r.Digest, "kept"
		case away || !answer.Resolving || !m.Clock.Now().Before(end):
			end = time.Time{}
		}
		if end.IsZero() {
			break
		}
		select {
		case <-m.Clock.After(pollTag):
		case <-req.Context().Done():
			return d, ""
		}
	}
	if away {
		if d, ok := m.tags.last(ref.name()); ok {
			return d, "kept"
		}
	}
	return d, ""
}

// learn sees whether a question for a manifest shows what a registry has said of a tag, and tells the pool.
func (m *Mirror) learn(req *http.Request, ref reference) {
	if req.Method == http.MethodHead || ref.registry == "" { // the client was given the digest by somebody else
		m.tags.exclude(ref, ref.digest)
		return
	}
	name, at := m.tags.guess(ref, req.Header.Get("Accept"), m.Store.listed)
	if name == "" {
		return
	}
	m.tags.learn(name, ref.digest, at)
	if m.Pool == nil {
		return
	}
	_, _ = m.account.ask(req.Context(), desk.Ask{Resolved: []desk.Resolution{{
		Tag: name, Digest: ref.digest, Age: max(m.Clock.Since(at), 0),
	}}}) // who cannot be told now is told with all that is known
}
