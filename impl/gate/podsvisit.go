package gate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/reverse"
)

const (
	maxHeader = 16 << 10 // bytes of the header of a kubelet's answer
	maxHead   = 64       // bytes in which its status is
)

// passed are the headers of a caller that a kubelet is shown, and only if they are an upgrade.
var passed = []string{
	"Upgrade", "X-Stream-Protocol-Version", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions",
	protocols,
}

const (
	protocols = "Sec-Websocket-Protocol"
	// bearer begins the websocket protocol by which browsers send a token to kube-apiserver.
	bearer = "base64url.bearer.authorization.k8s.io."
)

// visit is one request, from its caller to a kubelet.
type visit struct {
	h         *PodsHandler
	info      *genericrequest.RequestInfo
	sub       string
	user      string
	container string
	node      *corev1.Node
	began     time.Time
	patient   bool // the first answer may take any time

	code     int                   // of the answer, as far as it is known here
	err      error                 // why it failed
	dialed   atomic.Pointer[error] // why there is no connection
	late     atomic.Bool
	said     atomic.Int32 // status of the kubelet
	up, down atomic.Int64 // bytes to the kubelet, and from it
}

func newVisit(h *PodsHandler, info *genericrequest.RequestInfo) *visit {
	return &visit{h: h, info: info, sub: info.Subresource, began: time.Now()}
}

// log writes the line of the visit.
func (v *visit) log() {
	code := v.code
	if code == 0 {
		code = int(v.said.Load())
	}
	at := []any{
		"user", v.user, "subresource", v.sub, "namespace", v.info.Namespace, "pod", v.info.Name, "container", v.container,
		"code", code, "duration", time.Since(v.began).Round(time.Millisecond), "in", v.up.Load(), "out", v.down.Load(),
	}
	if v.node != nil {
		at = append(at, "node", v.node.Name)
	}
	if v.err != nil {
		at = append(at, "err", v.err)
	}
	v.h.c.Logger.Info("a caller was at a pod", at...)
}

// fail answers the caller with an error.
func (v *visit) fail(w http.ResponseWriter, req *http.Request, err error) {
	v.err, v.code = err, int(relay.StatusOf(err).Code)
	rest.WriteError(w, req, err)
}

// Error implements proxy.ErrorResponder.
func (v *visit) Error(w http.ResponseWriter, req *http.Request, err error) {
	v.fail(w, req, v.why(err))
}

// request is what the kubelet is sent. Of the caller's it has the method and what an upgrade needs.
func (v *visit) request(from *http.Request, at *url.URL) (*http.Request, error) {
	quiet := klog.NewContext(from.Context(), logr.Discard()) // what fails is in the line of the visit
	to, err := http.NewRequestWithContext(quiet, from.Method, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	to.Header.Set("User-Agent", "weir-gate")
	if v.sub != logs && upgrades(from.Header) {
		to.Header.Set("Connection", "Upgrade")
		for _, name := range passed {
			for _, value := range from.Header.Values(name) {
				if name == protocols {
					value = withoutTokens(value)
				}
				if value != "" {
					to.Header.Add(name, value)
				}
			}
		}
	}
	if v.h.c.CertFile == "" {
		token, err := v.h.c.Token()
		if err != nil {
			return nil, fmt.Errorf("the token for kubelets: %w", err)
		}
		to.Header.Set("Authorization", "Bearer "+token)
	}
	return to, nil
}

func upgrades(h http.Header) bool {
	for _, value := range h.Values("Connection") {
		if strings.Contains(strings.ToLower(value), "upgrade") {
			return h.Get("Upgrade") != ""
		}
	}
	return false
}

// withoutTokens takes tokens out of a list of websocket protocols.
func withoutTokens(list string) string {
	var rest []string
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one != "" && !strings.HasPrefix(one, bearer) {
			rest = append(rest, one)
		}
	}
	return strings.Join(rest, ", ")
}

// transport opens one connection to the kubelet of the visit, whatever address it is asked for.
func (v *visit) transport() *http.Transport {
	return &http.Transport{
		DialContext:       func(ctx context.Context, _, address string) (net.Conn, error) { return v.dial(ctx, address) },
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
}

// dial connects to the kubelet. What is spoken over the connection is in plain text here, so that it is counted as it
// is said.
func (v *visit) dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := v.secure(ctx, address)
	if err != nil {
		v.dialed.Store(&err)
		return nil, err
	}
	v.h.hold(v, c)
	k := &kubelet{Conn: c, v: v}
	if !v.patient {
		k.answers = time.AfterFunc(v.h.c.AnswerWithin, func() {
			v.late.Store(true)
			_ = c.Close()
		})
	}
	return k, nil
}

func (v *visit) secure(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, v.h.c.DialWithin)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	t, err := v.h.c.tls(host)
	if err != nil {
		return nil, err
	}
	raw, err := v.h.c.Dial(ctx, v.node, address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, t)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("TLS with the kubelet: %w", err)
	}
	return c, nil
}

// kubelet is a connection to a kubelet, which is counted.
type kubelet struct {
	net.Conn
	v       *visit
	answers *time.Timer // nil: it has all the time
	head    []byte      // of the answer, until its status is known
}

// Read implements net.Conn.
func (k *kubelet) Read(p []byte) (int, error) {
	n, err := k.Conn.Read(p)
	if k.v.late.Load() { // what it says when it sees the end is no answer
		return 0, os.ErrDeadlineExceeded
	}
	k.v.down.Add(int64(n))
	if n > 0 && k.v.said.Load() == 0 && len(k.head) < maxHead {
		k.head = append(k.head, p[:min(n, maxHead-len(k.head))]...)
		if line, _, ok := bytes.Cut(k.head, []byte("\n")); ok || len(k.head) == maxHead {
			if k.answers != nil {
				k.answers.Stop()
			}
			if _, code, ok := bytes.Cut(line, []byte(" ")); ok && len(code) >= 3 {
				if n, err := strconv.Atoi(string(code[:3])); err == nil {
					k.v.said.Store(int32(n)) //nolint:gosec // three digits
				}
			}
		}
	}
	return n, err
}

// Write implements net.Conn.
func (k *kubelet) Write(p []byte) (int, error) {
	n, err := k.Conn.Write(p)
	k.v.up.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (k *kubelet) Close() error {
	if k.answers != nil {
		k.answers.Stop()
	}
	return k.Conn.Close()
}

// writer is where the answer to an upgrade goes. An upgrade that the kubelet has refused to the gate does not get
// through: the caller would take it for what he himself may.
type writer struct {
	http.ResponseWriter
	v *visit
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.v.refused(); err != nil {
		return nil, nil, err
	}
	c, b, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.v.h.hold(w.v, c)
	return c, b, nil
}

// refused is the answer where the kubelet has not let the gate in; nil: it has.
func (v *visit) refused() error {
	code := v.said.Load()
	if code != http.StatusUnauthorized && code != http.StatusForbidden {
		return nil
	}
	next := "does not know weir-gate (401): the client certificate has to be of an authority that kubelets trust " +
		"(--client-ca-file), and not expired"
	if code == http.StatusForbidden {
		next = "does not let weir-gate do this (403): bind ClusterRole weir:gate:kubelets to the user of its client " +
			"certificate"
	}
	return status(http.StatusBadGateway, KubeletRefuses, "the kubelet of node "+v.node.Name+" "+next)
}

// why puts into words why the kubelet has not answered.
func (v *visit) why(err error) error {
	if refused := v.refused(); refused != nil {
		return refused
	}
	var known *apierrors.StatusError
	if errors.As(err, &known) {
		return known
	}
	node := v.node.Name
	look := "look whether the node runs, and its kubelet"
	dialed := v.dialed.Load()
	if dialed == nil {
		if v.late.Load() {
			return unreachable(node, fmt.Sprintf("its kubelet has not answered in %v; %s", v.h.c.AnswerWithin, look))
		}
		if code := v.said.Load(); code != 0 {
			return unreachable(node, fmt.Sprintf("its kubelet answers %d, and does not upgrade", code))
		}
		return unreachable(node, "its kubelet has ended the connection; try again: "+err.Error())
	}
	err = *dialed
	var way *reverse.Error
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	switch {
	case errors.Is(err, ErrNoPool):
		return unreachable(node, "it is of no pool, and this gate reaches nodes of pools only; use kubectl itself")
	case errors.As(err, &way):
		return unreachable(node, way.Error()+"; "+ofWay(way, look))
	case errors.As(err, &unknown), errors.As(err, &other):
		return unreachable(node, err.Error()+"; its kubelet shows a certificate that --kubelet-certificate-authority does "+
			"not know for this address: let it be signed (serverTLSBootstrap), or leave out that flag")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return unreachable(node, fmt.Sprintf("no connection to its kubelet in %v; %s", v.h.c.DialWithin, look))
	}
	return unreachable(node, err.Error()+"; "+look)
}

// told is the answer where the kubelet says of a log that it fails, with the code and text of the kubelet.
func told(v *visit, resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxTold))
	code := resp.StatusCode
	if code < http.StatusBadRequest { // a redirection leads nowhere here
		code = http.StatusBadGateway
	}
	e := status(int32(code), metav1.StatusReasonUnknown, //nolint:gosec // three digits
		fmt.Sprintf("the kubelet of node %s: %s %s", v.node.Name, resp.Status, text))
	switch code {
	case http.StatusBadRequest:
		e.ErrStatus.Reason = metav1.StatusReasonBadRequest
	case http.StatusNotFound:
		e.ErrStatus.Reason = metav1.StatusReasonNotFound
	}
	return e
}
