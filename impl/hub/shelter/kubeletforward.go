package shelter

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
)

const (
	connectTimeout = 10 * time.Second // for the TLS handshake with the kubelet
	maxRefusal     = 16 << 10         // bytes of what the kubelet says to a request that it refuses
)

// protocol are the headers that reach the kubelet: they choose how the stream runs. ReverseProxy sets the first two.
var protocol = []string{
	"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions",
	"X-Stream-Protocol-Version", "User-Agent",
}

// webSocketProtocol is the header of which one value may be a token.
const webSocketProtocol = "Sec-Websocket-Protocol"

// way is the one to the kubelet.
type way struct {
	KubeletConfig
	waiting waiting
	errors  *log.Logger
}

func newWay(c KubeletConfig) *way {
	return &way{
		KubeletConfig: c, waiting: waiting{clock: c.Clock, all: map[*wait]struct{}{}},
		errors: slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
}

// shown is the certificate that the hub shows, and whose it is.
type shown struct {
	*tls.Certificate
	leaf *x509.Certificate
}

// shows is what the hub shows to the kubelet.
func (k *way) shows() (s shown, refusal *apierrors.StatusError) {
	if s.Certificate = k.Cert.Get(); s.Certificate == nil {
		return s, apierrors.NewServiceUnavailable("the hub has no certificate that it could show to the kubelet of this node")
	}
	if s.leaf = s.Leaf; s.leaf != nil {
		return s, nil
	}
	leaf, err := x509.ParseCertificate(s.Certificate.Certificate[0])
	if err != nil {
		return s, apierrors.NewInternalError(fmt.Errorf("the hub's certificate: %w", err))
	}
	s.leaf = leaf
	return s, nil
}

// transport opens one connection, over which nothing else goes: who shows what on it is known.
func (k *way) transport(cert shown) *http.Transport {
	return &http.Transport{
		DialContext: k.Dial, DisableKeepAlives: true, DisableCompression: true,
		TLSHandshakeTimeout: connectTimeout, MaxResponseHeaderBytes: limit.MaxHeader,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, // an upgrade needs it
			InsecureSkipVerify: true, //nolint:gosec // a kubelet signs its own, and this is loopback: see the package comment
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return cert.Certificate, nil
			},
		},
	}
}

// forward has the kubelet answer a request.
func (k *way) forward(w *answer.Recorder, req *http.Request, asked *request.Request, at *url.URL, cert shown) {
	answered := k.waiting.begin(asked.Verb, cert.leaf)
	defer answered()
	at.Scheme, at.Host = "https", k.Address
	(&httputil.ReverseProxy{
		Transport: k.transport(cert), FlushInterval: -1, ErrorLog: k.errors,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = at, ""
			r.Out.Header = pass(r.Out.Header)
			r.Out.Body, r.Out.ContentLength = http.NoBody, 0
		},
		ModifyResponse: func(resp *http.Response) error {
			answered()
			if refusal := k.refused(resp, asked); refusal != nil {
				return refusal
			}
			if resp.StatusCode == http.StatusSwitchingProtocols {
				w.Code = resp.StatusCode
				return nil
			}
			resp.Header = http.Header{"Content-Type": {"text/plain"}, "Cache-Control": {"no-cache, private"}}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			var refusal *apierrors.StatusError
			if !errors.As(err, &refusal) {
				k.Logger.Debug("the kubelet of this node gives no answer", "err", err)
				refusal = apierrors.NewServiceUnavailable(fmt.Sprintf("the cloud is away, and the kubelet of this node does not "+
					"answer at %s: systemctl status kubelet tells more", k.Address))
			}
			answer.Write(w, refusal)
		},
	}).ServeHTTP(w, req)
}

// pass is what of a request's headers reaches the kubelet.
func pass(from http.Header) http.Header {
	to := http.Header{}
	for _, name := range protocol {
		if values := from[name]; len(values) > 0 {
			to[name] = values
		}
	}
	for _, line := range from[webSocketProtocol] {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); !strings.HasPrefix(one, uplink.WebSocketToken) {
				to.Add(webSocketProtocol, one)
			}
		}
	}
	if all := to[webSocketProtocol]; len(all) > 1 {
		to.Set(webSocketProtocol, strings.Join(all, ", "))
	}
	return to
}

// refused is what to answer if the kubelet has not done what it was asked; nil: it has.
func (k *way) refused(resp *http.Response, asked *request.Request) *apierrors.StatusError {
	code := resp.StatusCode
	if code == http.StatusSwitchingProtocols && asked.Upgrade || code >= 200 && code < 300 && !asked.Upgrade {
		return nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	text := strings.TrimSpace(string(said))
	k.Logger.Info("the kubelet of this node refuses a request", "code", code, "said", text)
	switch {
	case code == http.StatusUnauthorized:
		return apierrors.NewServiceUnavailable("the kubelet of this node does not take the hub's certificate: its " +
			"authentication.x509.clientCAFile has to name the authority that has signed it")
	case code == http.StatusForbidden || code == http.StatusInternalServerError && strings.HasPrefix(text, notAuthorized):
		return apierrors.NewServiceUnavailable("the kubelet of this node does not let the hub in: it asks its API server, " +
			"so its kubeconfig has to name this hub")
	case code == http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New(text))
	case code == http.StatusBadRequest:
		return apierrors.NewBadRequest(text)
	case code < 400:
		return apierrors.NewInternalError(fmt.Errorf("the kubelet of this node answers %s", resp.Status))
	}
	refusal := apierrors.NewGenericServerResponse(code, asked.Verb,
		schema.GroupResource{Resource: "pods/" + asked.Subresource}, asked.Name, text, 0, false)
	refusal.ErrStatus.Message += ": " + text
	return refusal
}

// notAuthorized begins what a kubelet says whose API server did not answer.
const notAuthorized = "Authorization error"
