package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/process"
)

const drain = 2 * time.Second

// Net is where ports are, as net.ListenConfig has them.
type Net interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// System is the network of the operating system.
type System struct {
	Kept *process.Sockets // over a restart of this process; nil: none are
}

const keepAlive = 30 * time.Second

// DialContext opens a connection.
func (System) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, address)
}

// Listen implements Net.
func (s System) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return s.Kept.Listen(ctx, network, address)
}

// keptPort is the flag of the one port that is kept while a hub restarts: kubelet, kube-proxy and pods of the node call
// there, at two addresses. Their calls wait for the next hub. If its program cannot even be executed, they wait as long
// as a TLS handshake may take, ten seconds for client-go. All other ports refuse as soon as the hub is gone, which
// suits their callers better: containerd asks the registry, and a hub of the pool another member. Plain HTTP has no
// handshake, so its clients could wait for ever.
const keptPort = "--secure-port"

// takenError says that another process has a port.
type takenError string

func (e takenError) Error() string { return string(e) }
func (e takenError) Unwrap() error { return syscall.EADDRINUSE }

// Listen opens a port; its error says what to do.
func Listen(on Net, flag, address string, port int) (net.Listener, error) {
	if _, ok := on.(System); ok && flag != keptPort {
		on = System{}
	}
	l, err := on.Listen(context.Background(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil,
			takenError(fmt.Sprintf("%s %d is taken on %s: stop the other process or choose another port", flag, port, address))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is not an address of this machine", address)
	case err != nil:
		return nil, fmt.Errorf("listen for %s: %w", flag, err)
	}
	return &limit.Listener{Listener: l, Sum: limit.MaxConnections, Each: limit.MaxConnectionsAddress}, nil
}

// URL is where processes of this machine call a port.
func URL(at net.Addr) string {
	host, port, _ := net.SplitHostPort(at.String())
	if net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, port)
}

// TLS is the configuration of a port. A client certificate is verified per request (see access.Identifier), so that an
// unknown one gets a clear 401 and not a broken handshake.
func TLS(shows uplink.Certificate, asks bool) *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		DynamicRecordSizingDisabled: true, // small first records are for far clients; ours are on this node
		GetCertificate:              func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shows.Get(), nil },
	}
	if asks {
		config.ClientAuth = tls.RequestClientCert
	}
	return config
}

// Serve serves until ctx ends, with TLS if there is a config of it; node, if it is set, reports whether a connection is
// this node's. Then it lets requests end for a moment before it cuts off what still runs, i.e. watches, and waits until
// these have ended in order.
func Serve(ctx context.Context, l net.Listener, config *tls.Config, handler http.Handler,
	node func(*tls.ConnectionState) bool, logger *slog.Logger) error {
	if config != nil {
		l = tls.NewListener(sealedListener{l}, config)
	}
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler: loud(handler, logger), ReadHeaderTimeout: limit.HeaderTimeout, IdleTimeout: limit.IdleTimeout,
		MaxHeaderBytes: limit.MaxHeader,
		BaseContext:    func(net.Listener) context.Context { return base },
		ConnContext:    access.WithConn,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: time.Minute, PingTimeout: 15 * time.Second,
			MaxReceiveBufferPerConnection: limit.ReceiveBuffer, MaxReceiveBufferPerStream: limit.ReceiveBuffer,
		},
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	if err := batchHTTP2(server, node); err != nil {
		return fmt.Errorf("configure HTTP/2 for %s: %w", l.Addr(), err)
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		if !shut(server) {
			cut() // watches end in order now, and what their clients have seen is recorded
			if !shut(server) {
				_ = server.Close()
			}
		}
	})
	err := server.Serve(l)
	if stop() { // it ended by itself
		close(done)
	}
	<-done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), err)
}

// shut waits until nothing is under way any more; false: it is after drain.
func shut(server *http.Server) bool {
	limit, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	return server.Shutdown(limit) == nil
}

// loud tells of a panic, which the server says at the level of a client's mistakes. One request is lost by it, and no
// other.
func loud(handler http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				logger.Error("an answer panicked", "method", req.Method, "path", req.URL.Path, "panic", fmt.Sprint(p),
					"stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			}
		}()
		handler.ServeHTTP(w, req)
	})
}
