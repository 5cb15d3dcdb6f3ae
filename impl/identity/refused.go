package identity

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// RefusedFor is how long credentials that the cloud answered 401 are answered so here: each 401 costs whoever shares the connection a new one.
	RefusedFor = 10 * time.Second
	maxRefused = 4096
)

// refused are credentials that the cloud does not take, in memory.
type refused struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	until map[digest]time.Time
	order []digest // as they were refused, so as they end
}

func newRefused(c clock.PassiveClock) *refused {
	return &refused{clock: c, until: map[digest]time.Time{}}
}

// add notes credentials. Those that are there keep their time: they were not asked about, or more than once at a time. When there is no room the
// oldest go.
func (r *refused) add(d digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for len(r.order) > 0 && (len(r.order) >= maxRefused || !now.Before(r.until[r.order[0]])) {
		delete(r.until, r.order[0])
		r.order = r.order[1:]
	}
	if _, known := r.until[d]; !known {
		r.until[d] = now.Add(RefusedFor)
		r.order = append(r.order, d)
	}
}

func (r *refused) has(d digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.until[d]
	return ok && r.clock.Now().Before(until)
}

// credentialsOf is what a request shows to be known by, but for a certificate; ok is false if that is nothing.
func credentialsOf(h http.Header) (d digest, ok bool) {
	parts := slices.Clone(h["Authorization"])
	for _, v := range h["Sec-Websocket-Protocol"] {
		if strings.Contains(v, webSocketToken) {
			parts = append(parts, "", v)
		}
	}
	if len(parts) == 0 {
		return d, false
	}
	return hashOf(parts...), true
}

// Refused tells whether the cloud has refused these credentials within RefusedFor.
func (j *Judge) Refused(h http.Header) bool {
	d, ok := credentialsOf(h)
	return ok && j.refused.has(d)
}

// Revoked tells whether the cloud's last word on a token that it had taken before was 401.
func (j *Judge) Revoked(h http.Header) bool {
	raw, carries, err := bearerOf(h)
	if err != nil || !carries {
		return false
	}
	last, known := j.verdicts.last(tokenUser(readToken(raw)).at, authenticated())
	return known && last.denied()
}

// Refuse takes the cloud's 401 to a request as it was sent: to a read or a write, of whatever.
func (j *Judge) Refuse(sent http.Header, a Attributes) { j.refuse(sent, a.isServers()) }

// refuse takes a 401. itself tells that kube-apiserver has said so, and nobody behind it: then it is about the token, else it may be about anything.
func (j *Judge) refuse(h http.Header, itself bool) {
	d, ok := credentialsOf(h)
	if !ok {
		return
	}
	if raw, carries, err := bearerOf(h); carries && err == nil {
		t := readToken(raw)
		user := tokenUser(t)
		last, known := j.verdicts.last(user.at, authenticated())
		ours, _ := j.ours(t)
		good := known && !last.denied() || !known && ours && j.inTime(t) == nil
		if good && !itself {
			return
		}
		if ours || known { // others are many, and refused anyway
			j.verdicts.learn(user.at, authenticated(), true, j.time.Now())
		}
	}
	j.refused.add(d)
	j.streams.end(d)
}

// isServers tells whether kube-apiserver itself answers. Behind it may be servers of other groups, which it asks in the name of the caller, and what
// pods, services and nodes answer: if one of those says 401, a good token is as good as before.
func (a Attributes) isServers() bool {
	group := a.Group
	if path, ok := strings.CutPrefix(a.Path, "/apis/"); ok {
		group, _, _ = strings.Cut(path, "/")
	}
	return isBuiltIn(group) && a.Subresource != "proxy" && a.Verb != "proxy"
}

func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && group != "metrics.k8s.io" && !strings.HasSuffix(group, ".metrics.k8s.io")
}
