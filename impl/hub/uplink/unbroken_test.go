package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestBreaks: a server that gives no connection, or ends one before it has shown who it is, is a break; one whose
// caller left is none.
func TestBreaks(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	broken := 0
	d := Dialer{
		Net: &net.Dialer{}, Meter: &Meter{}, TLS: &tls.Config{InsecureSkipVerify: true}, broken: func() { broken++ },
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		what    string
		ctx     context.Context
		net     Dials
		address string
		want    int
	}{
		{"answers", t.Context(), d.Net, srv.Listener.Addr().String(), 0},
		{"its caller left", left, d.Net, srv.Listener.Addr().String(), 0},
		{"ends connections", t.Context(), d.Net, silent.Addr().String(), 1},
		{"is not there", t.Context(), nowhere{}, srv.Listener.Addr().String(), 1},
	} {
		broken, d.Net = 0, c.net
		conn, err := d.Connect(c.ctx, "tcp", c.address)
		if err == nil {
			_ = conn.Close()
		}
		if broken != c.want {
			t.Errorf("a server that %s: %d breaks, want %d (%v)", c.what, broken, c.want, err)
		}
	}
}

// nowhere is where nobody listens.
type nowhere struct{}

func (nowhere) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("connection refused")
}
