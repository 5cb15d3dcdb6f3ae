package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	// MeshSilence is after what time a connection is asked whether it lives, and for as long again it may not answer.
	MeshSilence = 3 * time.Second
	connect     = 2 * time.Second // TCP, and as long for TLS
	lookEvery   = 5 * time.Second // how often it is looked whether what is open is still valid
)

// MeshConfig of a mesh. All fields are required.
type MeshConfig struct {
	Self     string
	Replicas map[string]*url.URL // where each replica is met, by name; this one is among them
	Listen   string              // host:port
	Dir      string              // of sockets; the process works in it from Start on

	// Certificate is that of this replica now.
	Certificate func() (*tls.Certificate, error)
	// Verify tells why who shows a chain, leaf first, is not the replica of that name, as the server at a host or, without
	// a host, as a client.
	Verify func(name, host string, chain []*x509.Certificate) error
	// NameOf is the replica that a certificate claims to be of; "": none.
	NameOf func(*x509.Certificate) string
	// Changes are closed when Verify may judge otherwise than before.
	Changes func() []<-chan struct{}
	// Refresh is called before what is open is verified again.
	Refresh func(context.Context)

	Clock  clock.WithTicker
	Logger *slog.Logger
}

// quietly is for what the other end of a connection may cause as often as it likes.
func (c *MeshConfig) quietly() *log.Logger {
	return slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug)
}

// URL is where etcd meets a replica.
func URL(name string) *url.URL { return &url.URL{Scheme: "unix", Host: socket(name)} }

func socket(name string) string { return net.JoinHostPort(name, strconv.Itoa(contract.PeerPort)) }
