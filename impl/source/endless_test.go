package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestLongErrors: attack 165. What an upstream says does not fill the log of those who read there.
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("x", 4<<20)
	failure := hop.FromStatus(&metav1.Status{Code: 500, Message: long, Reason: metav1.StatusReason(long)})
	r := newRelay(t)
	mark := relay.NewIntake(r).Apply(&wire.Event{
		Type: wire.Bookmark, Kind: r.Resource().WireKind(), Version: 1, Testimony: long,
	})
	for about, err := range map[string]error{"status": failure, "testimony": mark, "any": errors.New(long)} {
		var log bytes.Buffer
		f, made := NewFeeder(Config{Relay: r, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if made != nil {
			t.Fatal(made)
		}
		if n := len(err.Error()); n > 5<<10 && about != "any" {
			t.Errorf("%s: an error of %d bytes", about, n)
		}
		f.failed(&hop.Upstream{Name: "gate"}, err)
		if s := f.Status(); log.Len() > 2*maxError || len(s.LastError) > maxError || s.Answer != hop.Answered(err) {
			t.Errorf("%s: %d bytes in the log, %d in the status, answer %d", about, log.Len(), len(s.LastError), s.Answer)
		}
	}
}
