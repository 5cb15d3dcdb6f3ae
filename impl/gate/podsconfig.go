package gate

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/pki"
)

// Bounds where Config has none.
const (
	defaultPerCaller    = 32
	defaultSum          = 256
	defaultDialWithin   = 20 * time.Second
	defaultAnswerWithin = 30 * time.Second
	readWithin          = 10 * time.Second // kube-apiserver has to answer
)

// ErrNoPool is what Config.Dial answers for a node that is of no pool.
var ErrNoPool = errors.New("the node is of no pool")

// PodsCluster is kube-apiserver as the gate's own identity, which needs get of pods and nodes.
type PodsCluster interface {
	corev1client.PodsGetter
	corev1client.NodesGetter
}

// PodsConfig is what a Handler is made of.
type PodsConfig struct {
	// Authorizer answers whether a caller may create where the chain has asked about get. It is that of the chain.
	// Required.
	Authorizer authorizer.UnconditionalAuthorizer
	// PodsCluster is where Pods and Nodes are read, once for each request. Required.
	Cluster PodsCluster
	// Dial opens a connection to the kubelet of a node, at an IP address and a port. It returns when ctx ends. Its error
	// is shown to the caller. ErrNoPool and *reverse.Error are put into words. Required.
	Dial func(ctx context.Context, node *corev1.Node, address string) (net.Conn, error)

	// CertFile and KeyFile are PEM files of the client certificate that kubelets are shown. They are read for each
	// connection, so another pair may come while the gate runs.
	CertFile, KeyFile string
	// Token is what kubelets are shown where there is no certificate, see the package for what that costs. It needs
	// CAFile.
	Token func() (string, error)
	// CAFile is a PEM file with the authorities of kubelets' serving certificates, read for each connection. "": they are
	// not verified, as by kube-apiserver without --kubelet-certificate-authority.
	CAFile string

	PerCaller    int           // requests at once of one user. 0: 32
	Sum          int           // of all users. 0: 256
	DialWithin   time.Duration // to connect to a kubelet, with TLS. 0: 20 s
	AnswerWithin time.Duration // to the first byte of its answer, but for logs with follow. 0: 30 s

	Logger *slog.Logger // nil: slog.Default()
}

// Validate reports what is missing, and files that cannot be read.
func (c PodsConfig) Validate() error {
	switch {
	case c.Authorizer == nil || c.Cluster == nil || c.Dial == nil:
		return errors.New("pods: Authorizer, Cluster and Dial are required")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("a client certificate for kubelets needs both its file and that of its key")
	case c.CertFile == "" && c.Token == nil:
		return errors.New("kubelets have to know the gate: give the files of a client certificate and its key")
	case c.CertFile == "" && c.CAFile == "":
		return errors.New("a token is sent only to kubelets whose certificate is verified: give the file of their " +
			"authority, or a client certificate instead of the token")
	case c.PerCaller < 0 || c.Sum < 0 || c.DialWithin < 0 || c.AnswerWithin < 0:
		return errors.New("pods: bounds are 0 or more")
	}
	_, err := c.tls("")
	return err
}

// tls is how a kubelet at an address is spoken to, by the files as they are now.
func (c PodsConfig) tls(host string) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ServerName: host}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("the client certificate for kubelets: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	if c.CAFile == "" {
		t.InsecureSkipVerify = true //nolint:gosec // as kube-apiserver does by default; a certificate gives nothing away
		return t, nil
	}
	roots, err := authorities(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("the authority of kubelets: %w", err)
	}
	t.RootCAs = roots
	return t, nil
}

// PodsHandler serves logs, exec, attach and port-forward of pods. It is safe for concurrent use.
type PodsHandler struct {
	c       PodsConfig
	slots   limit.Slots
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[any][]io.Closer // of each request what ends with Close
}

// NewPods checks a configuration. Close has to be called.
func NewPods(c PodsConfig) (*PodsHandler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.PerCaller, c.Sum = cmp.Or(c.PerCaller, defaultPerCaller), cmp.Or(c.Sum, defaultSum)
	c.DialWithin = cmp.Or(c.DialWithin, defaultDialWithin)
	c.AnswerWithin = cmp.Or(c.AnswerWithin, defaultAnswerWithin)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &PodsHandler{c: c, slots: limit.Slots{Sum: c.Sum, Each: c.PerCaller}, open: map[any][]io.Closer{}}, nil
}

// Close ends all requests, and waits for them.
func (h *PodsHandler) Close() {
	h.mu.Lock()
	h.closed = true
	for _, all := range h.open {
		for _, c := range all {
			_ = c.Close()
		}
	}
	h.mu.Unlock()
	h.running.Wait()
}

// begin counts a request, unless the Handler was closed.
func (h *PodsHandler) begin(v any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.running.Add(1)
	h.open[v] = nil
	return true
}

// hold has something closed by Close while a request lasts. It is closed at once if that was called, or the request is
// over.
func (h *PodsHandler) hold(v any, c io.Closer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, lasts := h.open[v]; h.closed || !lasts {
		_ = c.Close()
		return
	}
	h.open[v] = append(h.open[v], c)
}

func (h *PodsHandler) end(v any) {
	h.mu.Lock()
	delete(h.open, v)
	h.mu.Unlock()
	h.running.Done()
}

// ServesPods reports whether a request is one that a Handler serves.
func ServesPods(info *genericrequest.RequestInfo) bool {
	if info == nil || !info.IsResourceRequest || info.APIGroup != "" || info.APIVersion != "v1" ||
		info.Resource != "pods" || info.Namespace == "" || info.Name == "" || len(info.Parts) != 3 {
		return false
	}
	switch info.Subresource {
	case logs, exec, attach, portForward:
		return true
	}
	return false
}

// authorities reads certificates of a file.
func authorities(path string) (*x509.CertPool, error) {
	text, err := disk.ReadFile(path, pki.MaxPEM)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New(path + " has no certificate in PEM")
	}
	return pool, nil
}
