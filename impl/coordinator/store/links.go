package store

import (
	"crypto/x509"
	"log/slog"
	"net"
	"sync"
)

// maxTold bounds of how many strangers it is told.
const maxTold = 64

// links are the connections to and from other replicas.
type links struct {
	logger *slog.Logger

	mu   sync.Mutex
	open map[*link]struct{}
	told map[string]string // why somebody was refused last, by the name that he said he was
}

// link is one connection, below its TLS.
type link struct {
	net.Conn
	links *links
	who   string
	again func() error // tells why it is no longer valid; nil: nothing is proved yet

	closed bool
}

// accepted is a listener whose connections are links.
type accepted struct {
	net.Listener
	links *links
}

// Accept implements net.Listener.
func (a *accepted) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &link{Conn: c, links: a.links}, nil
}

// Close implements net.Conn.
func (l *link) Close() error {
	l.links.mu.Lock()
	l.closed = true
	delete(l.links.open, l)
	l.links.mu.Unlock()
	return l.Conn.Close()
}

// admit lets a connection count if the one that is at its other end does, and for as long as he does.
func (l *link) admit(who string, chain []*x509.Certificate, check func() error) error {
	if err := check(); err != nil {
		l.links.refused(who, l.RemoteAddr(), chain, err)
		return err
	}
	l.links.mu.Lock()
	defer l.links.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.who, l.again = who, check
	l.links.open[l] = struct{}{}
	delete(l.links.told, chain[0].Subject.CommonName)
	return nil
}

// refused tells of somebody once, and again when the reason is another one: etcd tries ten times a second.
func (s *links) refused(who string, at net.Addr, chain []*x509.Certificate, err error) {
	name := ""
	if len(chain) > 0 {
		name = chain[0].Subject.CommonName
	}
	s.mu.Lock()
	if s.told == nil || len(s.told) == maxTold {
		s.told = map[string]string{}
	}
	known := s.told[name] == err.Error()
	s.told[name] = err.Error()
	s.mu.Unlock()
	if !known {
		s.logger.Warn("a connection between replicas is refused", "replica", who, "certificate", name, "address", at.String(),
			"err", err)
	}
}

// verify ends the connections that are no longer valid.
func (s *links) verify() {
	s.mu.Lock()
	all := make([]*link, 0, len(s.open))
	for l := range s.open {
		all = append(all, l)
	}
	s.mu.Unlock()
	for _, l := range all {
		_ = l.verify()
	}
}

// verify ends the connection if it is no longer valid, and tells why.
func (l *link) verify() error {
	l.links.mu.Lock()
	who, again, closed := l.who, l.again, l.closed
	l.links.mu.Unlock()
	if closed || again == nil {
		return net.ErrClosed
	}
	err := again()
	if err != nil {
		l.links.logger.Warn("a connection between replicas ends", "replica", who, "address", l.RemoteAddr().String(),
			"err", err)
		_ = l.Close()
	}
	return err
}
