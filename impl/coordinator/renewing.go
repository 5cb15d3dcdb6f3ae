package coordinator

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

// idlePeer is after what time a connection to another replica ends over which nothing goes, that of a certificate of
// before above all.
const idlePeer = 30 * time.Second

// renewing is a way over which each request goes by the certificate that this process has now: after a renewal, over a
// connection of its own. What is under way goes on where it is. Over an old connection the other end would know this
// one by the old certificate, and refuse it from its end on.
type renewing struct {
	certificate func() (*tls.Certificate, error)
	build       func() *http.Transport

	mu     sync.Mutex
	shown  []byte // the certificate over now
	now    *http.Transport
	before *http.Transport // nil: there was no renewal
}

func newRenewing(certificate func() (*tls.Certificate, error), build func() *http.Transport) *renewing {
	return &renewing{certificate: certificate, build: build, now: build()}
}

// RoundTrip implements http.RoundTripper.
func (r *renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.over().RoundTrip(req)
}

func (r *renewing) over() *http.Transport {
	r.mu.Lock()
	defer r.mu.Unlock()
	pair, err := r.certificate()
	if err != nil || len(pair.Certificate) == 0 { // being written
		return r.now
	}
	if r.shown != nil && !bytes.Equal(r.shown, pair.Certificate[0]) {
		if r.before != nil {
			r.before.CloseIdleConnections()
		}
		r.before, r.now = r.now, r.build()
		r.before.CloseIdleConnections()
	}
	r.shown = pair.Certificate[0]
	return r.now
}

// CloseIdleConnections ends connections over which nothing goes.
func (r *renewing) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.CloseIdleConnections()
	if r.before != nil {
		r.before.CloseIdleConnections()
	}
}
