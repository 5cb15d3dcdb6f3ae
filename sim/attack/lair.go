package attack

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source/hop"
)

// lair is where a liar shows its pool what it forged, as a hub does, with the key of node 2.
type lair struct {
	*hop.Server
	address string
	asked   chan string // paths, as far as somebody takes them
	stop    func()
}

// lair opens one. instead, if it is set, answers what it returns true for.
func (x *scene) lair(ctx context.Context, instead func(http.ResponseWriter, *http.Request) bool,
	relays ...*relay.Relay) (*lair, error) {
	who, err := x.who("member 2")
	if err != nil {
		return nil, err
	}
	l := &lair{
		Server: hop.NewServer(x.node(2), scope.NewSet(relays...).All, clock.RealClock{}), asked: make(chan string, 1000),
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case l.asked <- req.URL.Path:
		default:
		}
		if instead == nil || !instead(w, req) {
			l.ServeHTTP(w, req)
		}
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{*who.cert}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13,
	}
	s.StartTLS()
	ends := make([]func(), 0, len(relays))
	for _, r := range relays {
		ends = append(ends, keepRelay(ctx, r))
	}
	l.address = s.Listener.Addr().String()
	l.stop = func() {
		s.CloseClientConnections()
		s.Close()
		for _, end := range ends {
			end()
		}
	}
	return l, nil
}

// read reports whether the coordinator has read the liar as its leader.
func (l *lair) read() bool {
	read, _ := l.Read()
	return read
}

// telling adds an address to the JSON of a Lease.
func telling(lease, address string) string {
	return strings.Replace(lease, `"metadata":{`, fmt.Sprintf(`"metadata":{"annotations":{%q:%q},`, contract.PoolAddress,
		address), 1)
}
