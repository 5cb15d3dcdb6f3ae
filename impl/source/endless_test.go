package source

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// endless is a list of objects that does not end; read counts its bytes. It gives up after far more than anybody should take.
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

// TestEndlessLists: attack 57. A feed or an offer whose list does not end is refused when it is more than the relay may hold.
func TestEndlessLists(t *testing.T) {
	for name, take := range map[string]func(*relay.Relay, io.Reader) error{
		"feed": func(r *relay.Relay, body io.Reader) error {
			return Receive(t.Context(), io.MultiReader(&oneByte{modeList}, body), r, relay.History{}, func() error { return nil })
		},
		"offer": func(r *relay.Relay, body io.Reader) error {
			return TakeOffer(t.Context(), io.MultiReader(&oneByte{modeList}, body), r, relay.History{}, 1, func() error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := relay.New(relay.Config{Resource: newRelay(t).Resource(), MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			body := &endless{t: t, r: r}
			var full *relay.FullError
			if err := take(r, body); !errors.As(err, &full) || r.Status().Synced || body.read > 2<<20 {
				t.Errorf("%v after %d bytes and %d objects", err, body.read, body.n)
			}
		})
	}
}

// oneByte is read once.
type oneByte struct{ b byte }

func (o *oneByte) Read(p []byte) (int, error) {
	if o.b == 0 {
		return 0, io.EOF
	}
	p[0], o.b = o.b, 0
	return 1, nil
}
