package source

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// endless is a list of objects that does not end; read counts its bytes. It gives up after far more than anybody should
// take.
type endless struct {
	t    *testing.T
	r    *relay.Relay
	rest []byte
	n    int
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.n++; e.n > 100_000 {
			return 0, io.ErrUnexpectedEOF
		}
		o := slice(e.t, fmt.Sprint("o", e.n), 1)
		e.rest = wire.AppendProtobufFrame(nil, wire.Added, e.r.Resource().WireKind(), o.Raw)
	}
	n := copy(p, e.rest)
	e.rest, e.read = e.rest[n:], e.read+n
	return n, nil
}

// TestEndlessLists: attack 57. What a relay of the pool shows without an end is refused when it is more than the relay
// may hold.
func TestEndlessLists(t *testing.T) {
	for name, unconfirmed := range map[string]bool{"leader": false, "any hub": true} {
		t.Run(name, func(t *testing.T) {
			r, err := relay.New(relay.Config{Resource: newRelay(t).Resource(), MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			f, err := NewFeeder(Config{Relay: r})
			if err != nil {
				t.Fatal(err)
			}
			body := &endless{t: t, r: r}
			err = f.feed(t.Context(), &hop.Upstream{
				Name: "hub", URL: &url.URL{Scheme: "https", Host: "hub"}, Progress: true, Unconfirmed: unconfirmed,
				Client: &http.Client{Transport: body},
			})
			var full *relay.FullError
			if !errors.As(err, &full) || r.Status().Synced || body.read > 2<<20 {
				t.Errorf("%v after %d bytes and %d objects", err, body.read, body.n)
			}
		})
	}
}

func (e *endless) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(e), Request: req}, nil
}
