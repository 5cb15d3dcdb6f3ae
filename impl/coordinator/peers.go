package coordinator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	peerConnect = 2 * time.Second  // TCP and TLS
	peerSilence = 3 * time.Second  // after which a connection is asked whether it lives, and for as long again
	joinAnswer  = 15 * time.Second // of a replica that serves: it changes the membership meanwhile
)

// peers are the other replicas, as a client of their APIs.
type peers struct {
	self      string
	set       *settings
	known     *authorities
	roots     func() *x509.CertPool // that sign certificates of replicas, now
	transport *renewing
	held      atomic.Pointer[tls.Certificate] // the last that was a pair
	serving   *serving                        // judges them
	mesh      *store.Mesh
	logger    *slog.Logger

	*store.Replicas // as they are now
}

// newPeers reads the credential by which other replicas know this one. nil: this is the only one.
func newPeers(s *settings, known *authorities) (*peers, error) {
	if len(s.members) == 0 {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.peerFile, s.peerFile)
	if err != nil {
		return nil, cli.Usage("--certificates-dir", s.peerFile, "a PEM file of a key and its certificate: "+err.Error())
	}
	if err := s.checkPeerCert(pair, known.roots()); err != nil {
		return nil, cli.Usage("--certificates-dir", s.peerFile, err.Error())
	}
	p := &peers{self: s.Name, set: s, known: known, roots: known.roots, logger: s.Logger}
	p.held.Store(&pair)
	p.transport = newRenewing(p.certificate, func() *http.Transport {
		return &http.Transport{
			DialTLSContext:     p.dial,
			ForceAttemptHTTP2:  true,
			HTTP2:              &http.HTTP2Config{SendPingTimeout: peerSilence, PingTimeout: peerSilence},
			IdleConnTimeout:    idlePeer,
			DisableCompression: true,
		}
	})
	client := &http.Client{
		Transport:     p.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	p.Replicas = store.NewReplicas(s.NodePoolName, s.Name, client, s.members)
	return p, nil
}

// certificate is that of this replica now: it may have been renewed. While the files are no pair, as when somebody is
// writing them, the last one counts that was.
func (p *peers) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(p.set.peerFile, p.set.peerFile)
	if err == nil {
		p.held.Store(&pair)
	}
	if held := p.held.Load(); held != nil {
		return held, nil
	}
	return nil, err
}

// checkPeerCert tells why the others would not know this replica by its certificate: they can only complain of somebody
// unknown.
func (s *settings) checkPeerCert(pair tls.Certificate, roots *x509.CertPool) error {
	// One that has ended, or begins by a clock that is behind, is for others to judge.
	cert, now := pair.Leaf, s.Clock.Now()
	if err := pki.CheckSpan(cert, now); err != nil {
		s.Logger.Warn("the certificate of this replica is not valid by this machine's clock", "file", s.peerFile,
			"err", err)
		now = cert.NotAfter
	}
	want := contract.ReplicaUser(s.NodePoolName, s.Name)
	if cert.Subject.CommonName != want {
		return fmt.Errorf("a certificate of this replica: its common name is %q, want %q", cert.Subject.CommonName, want)
	}
	for _, group := range []string{contract.ReplicaGroup, contract.PoolGroupPrefix + s.NodePoolName} {
		if !slices.Contains(cert.Subject.Organization, group) {
			return fmt.Errorf("a certificate of this replica: its organizations are %q, want %q among them",
				cert.Subject.Organization, group)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: issuers(pair), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return fmt.Errorf("a certificate that --peer-ca-file vouches for, as a client: %w", err)
	}
	i := slices.IndexFunc(s.members, func(m store.Replica) bool { return m.Name == s.Name })
	if _, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: issuers(pair), CurrentTime: now, DNSName: s.members[i].Peer.Hostname(),
	}); err != nil {
		return fmt.Errorf("a certificate that --peer-ca-file vouches for, as the server at %s: %w", s.members[i].Peer, err)
	}
	return nil
}

// issuers are the certificates of a file behind the first.
func issuers(pair tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool
}

// cluster is what etcd has to know of all replicas; nil: there is one.
func (p *peers) cluster() *store.Cluster {
	if p == nil {
		return nil
	}
	c := &store.Cluster{
		Token: "weir:" + p.set.NodePoolName, Name: p.self, Serve: p.mesh.Serve, Meshed: p.mesh.Meshed,
		CertFile: p.set.peerFile, KeyFile: p.set.peerFile, CAFile: p.set.peerCAFile(p.known), Join: p.join,
		Joins: p.set.ClusterState == ClusterExisting,
	}
	if p.set.Placement != "" {
		c.Now = func() []store.Peer { return storePeers(p.Now()) }
	}
	if p.set.ClusterToken != "" {
		c.Token = p.set.ClusterToken
	}
	c.Peers = storePeers(p.set.members)
	for _, m := range p.set.members {
		c.CommonNames = append(c.CommonNames, contract.ReplicaUser(p.set.NodePoolName, m.Name))
	}
	return c
}

// join asks the others to take this replica, which has no data, in again. One that serves is enough. false: none does.
func (p *peers) join(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, joinAnswer)
	defer cancel()
	type answer struct {
		served bool
		err    error
	}
	others := p.Others()
	answers := make([]answer, 0, len(others))
	// One after the other: two that change the membership at once would only be in each other's way.
	for name, up := range others {
		served, err := p.askToJoin(ctx, up)
		if served && err == nil {
			return true, nil
		}
		if err != nil {
			err = fmt.Errorf("replica %s: %w", name, err)
		}
		answers = append(answers, answer{served, err})
	}
	var all []error
	served := false
	for _, a := range answers {
		if a.served {
			served, all = true, append(all, a.err)
		}
	}
	if !served {
		return false, nil
	}
	return false, errors.Join(all...)
}

func (p *peers) askToJoin(ctx context.Context, up *hop.Upstream) (served bool, err error) {
	// A replica that waits for a majority itself takes connections and answers nothing.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(joinAnswer/3, func() { cancel(errors.New("no answer")) })
	defer silent.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, up.URL.JoinPath(contract.RejoinPath).String(), nil)
	if err != nil {
		return false, err
	}
	resp, err := up.Client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return true, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	return true, nil
}

// rejoin takes a replica in again that has lost its data. It is authorized as a replica.
func (p *peers) rejoin(readmit func(ctx context.Context, name string) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		u, _ := genericrequest.UserFrom(req.Context())
		name := authz.ReplicaOf(p.set.NodePoolName, u)
		if err := readmit(req.Context(), name); err != nil {
			p.logger.Warn("a replica that lost its data cannot be taken in", "replica", name, "err", err)
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		p.logger.Info("a replica without data is taken in", "replica", name)
		w.WriteHeader(http.StatusOK)
	})
}

// meetOthers lets an exchange happen with each other replica.
func (p *peers) meetOthers(ctx context.Context, exchange func(ctx context.Context, by http.RoundTripper, at *url.URL)) {
	if p == nil {
		return
	}
	for _, up := range p.Others() {
		asking, cancel := context.WithTimeout(ctx, peerSilence)
		exchange(asking, p.transport, up.URL)
		cancel()
	}
}

// close ends all connections, those of etcd too, and gives the port back.
func (p *peers) close() {
	if p != nil {
		p.mesh.Close()
		p.transport.CloseIdleConnections()
	}
}

// dial opens a connection to another replica. Whom to trust is asked for each one: the authorities may have changed.
// One whose certificate has ended while the cloud is away is read on.
func (p *peers) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*peerConnect) // TCP, and TLS
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ServerName: host,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.certificate() },
		InsecureSkipVerify:   true, //nolint:gosec // it is verified here, by the time that was proved
		VerifyConnection: func(s tls.ConnectionState) error {
			opts := x509.VerifyOptions{
				Roots: p.roots(), DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			}
			_, err := p.serving.late.Verify(s.PeerCertificates, opts)
			return err
		},
	}
	return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: peerConnect}, Config: config}).DialContext(ctx, network, address)
}

// storePeers are the replicas as etcd knows them.
func storePeers(members []store.Replica) (all []store.Peer) {
	for _, m := range members {
		all = append(all, store.Peer{Name: m.Name, URL: store.URL(m.Name), Former: m.Peer})
	}
	return all
}

// heed takes the replicas that the pool is told of.
func (p *peers) heed(told directory.Entry) {
	if p == nil {
		return
	}
	if members := p.set.Placement.Members(told); len(members) > 0 {
		p.Take(members)
	}
}

// follow does so while the pool is told of others, until ctx ends.
func (p *peers) follow(ctx context.Context, told *directory.Directory) error {
	for ctx.Err() == nil {
		changed := told.Changed()
		p.heed(told.Now())
		if err := p.mesh.Follow(p.Meets()); err != nil {
			p.logger.Error("another replica cannot be met", "err", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}
