package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/weir-edge/weir/impl/limit"
)

const drain = 2 * time.Second

// listen opens a port; its error says what to do.
func listen(on Net, flag, address string, port int) (net.Listener, error) {
	l, err := on.Listen(context.Background(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %d is taken on %s: stop the other process or choose another port", flag, port, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is not an address of this machine", address)
	case err != nil:
		return nil, fmt.Errorf("listen for %s: %w", flag, err)
	}
	return &limit.Listener{Listener: l, Sum: maxConnections, Each: maxConnectionsAddress}, nil
}

// tlsConfig asks for a client certificate if there are authorities that could have signed it. It is verified per request
// (see identifier), so that an unknown one gets a clear 401 and not a broken handshake.
func (h *Hub) tlsConfig() *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		DynamicRecordSizingDisabled: true, // small first records are for far clients; ours are on this node
		GetCertificate:              func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.serving.get(), nil },
	}
	if h.clientCA != nil {
		config.ClientAuth = tls.RequestClientCert
	}
	return config
}

// secureListener is where the API is served.
func (h *Hub) secureListener() net.Listener {
	return tls.NewListener(sealedListener{h.secure}, h.tlsConfig())
}

// serve serves until ctx ends; node, if it is set, tells whether a connection is this node's. Then it lets requests end for a moment before it cuts off what still runs, i.e. watches.
func serve(ctx context.Context, l net.Listener, handler http.Handler, node func(*tls.ConnectionState) bool, logger *slog.Logger) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: withConn,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: time.Minute, PingTimeout: 15 * time.Second,
			MaxReceiveBufferPerConnection: receiveBuffer, MaxReceiveBufferPerStream: receiveBuffer,
		},
		ErrorLog: log.New(logWriter{logger}, "", 0),
	}
	if err := batchHTTP2(server, node); err != nil {
		return fmt.Errorf("configure HTTP/2 for %s: %w", l.Addr(), err)
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if server.Shutdown(limit) != nil {
			cut()
			_ = server.Close()
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
