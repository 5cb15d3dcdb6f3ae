package podstest

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	translator "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/weir-edge/weir/impl/pki"
)

// Kubelet plays a kubelet.
//
// logs are "one\n", and with follow each of Lines until it is closed. exec and attach run the first word of the
// command: cat says what it hears, echo the other words, size each size of the terminal, and exit ends with the code
// that follows. Attach runs cat. A forwarded port says what it hears, but for port 81, where nobody listens.
type Kubelet struct {
	Lines chan string

	// Before, if set, answers instead, if it returns true.
	Before func(w http.ResponseWriter, req *http.Request) bool

	server, inner *httptest.Server

	mu   sync.Mutex
	seen []Seen
}

// Seen is a request that a kubelet got.
type Seen struct {
	Method, Path, User string
	Query              url.Values
	Header             http.Header
	Host               string
}

func newKubelet(t testing.TB, authority *pki.Authority, cert tls.Certificate) *Kubelet {
	k := &Kubelet{Lines: make(chan string)}
	k.inner = httptest.NewServer(http.HandlerFunc(k.stream))
	k.server = httptest.NewUnstartedServer(http.HandlerFunc(k.serve))
	k.server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs: authority.Pool(),
	}
	k.server.StartTLS()
	t.Cleanup(k.inner.Close)
	t.Cleanup(k.server.Close)
	return k
}

// Addr is where it listens.
func (k *Kubelet) Addr() string { return k.server.Listener.Addr().String() }

// Stop ends it.
func (k *Kubelet) Stop() { k.server.Close() }

// Cut ends all connections to it.
func (k *Kubelet) Cut() { k.server.CloseClientConnections() }

// Last is what it was asked last.
func (k *Kubelet) Last() Seen {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.seen) == 0 {
		return Seen{}
	}
	return k.seen[len(k.seen)-1]
}

// Asked is how often it was asked.
func (k *Kubelet) Asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.seen)
}

func (k *Kubelet) serve(w http.ResponseWriter, req *http.Request) {
	s := Seen{
		Method: req.Method, Path: req.URL.Path, Query: req.URL.Query(), Header: maps.Clone(req.Header), Host: req.Host,
	}
	if len(req.TLS.PeerCertificates) > 0 {
		s.User = req.TLS.PeerCertificates[0].Subject.CommonName
	} else if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		s.User = "token " + token
	}
	k.mu.Lock()
	k.seen = append(k.seen, s)
	k.mu.Unlock()
	if k.Before != nil && k.Before(w, req) {
		return
	}
	if s.User == "" {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	if strings.HasPrefix(req.URL.Path, "/containerLogs/") {
		k.logs(w, req)
		return
	}
	to, _ := url.Parse(k.inner.URL)
	to.Path, to.RawQuery = req.URL.Path, req.URL.RawQuery
	var h http.Handler = proxy.NewUpgradeAwareHandler(to, nil, false, true, responder{})
	switch q := s.Query; {
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(req):
		h = translator.NewStreamTranslatorHandler(to, nil, 0, translator.Options{
			Stdin: q.Has("input"), Stdout: q.Has("output"), Stderr: q.Has("error"), Tty: q.Has("tty"),
		})
	case wsstream.IsWebSocketRequestWithTunnelingProtocol(req):
		h = translator.NewTunnelingHandler(h)
	}
	h.ServeHTTP(w, req)
}

type responder struct{}

func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

func (k *Kubelet) logs(w http.ResponseWriter, req *http.Request) {
	_, _ = io.WriteString(w, "one\n")
	if !req.URL.Query().Has("follow") {
		return
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line, more := <-k.Lines:
			if !more {
				return
			}
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		case <-req.Context().Done():
			return
		}
	}
}

// stream is the part of a kubelet that speaks SPDY: containerd's, in a real one.
func (k *Kubelet) stream(w http.ResponseWriter, req *http.Request) {
	known := []string{remotecommand.StreamProtocolV4Name}
	if strings.HasPrefix(req.URL.Path, "/portForward/") {
		known = []string{"portforward.k8s.io"}
	}
	if _, err := httpstream.Handshake(req, w, known); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 16)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	if strings.HasPrefix(req.URL.Path, "/portForward/") {
		forward(conn, streams)
		return
	}
	run(conn, streams, req.URL.Query())
}

// run has a command.
func run(conn httpstream.Connection, streams <-chan httpstream.Stream, q url.Values) {
	want := 1
	for _, name := range []string{"input", "output", "error", "tty"} {
		if q.Has(name) {
			want++
		}
	}
	of := map[string]httpstream.Stream{}
	for len(of) < want {
		select {
		case s := <-streams:
			of[s.Headers().Get("streamType")] = s
		case <-conn.CloseChan():
			return
		case <-time.After(time.Minute):
			return
		}
	}
	command := q["command"]
	if len(command) == 0 {
		command = []string{"cat"}
	}
	status := metav1.Status{Status: metav1.StatusSuccess}
	switch command[0] {
	case "cat":
		_, _ = io.Copy(of["stdout"], of["stdin"])
	case "echo":
		_, _ = io.WriteString(of["stdout"], strings.Join(command[1:], " ")+"\n")
	case "size":
		sizes := json.NewDecoder(bufio.NewReader(of["resize"]))
		var size struct{ Width, Height int }
		if sizes.Decode(&size) == nil {
			_, _ = fmt.Fprintf(of["stdout"], "%dx%d\n", size.Width, size.Height)
		}
	case "exit":
		_, _ = io.WriteString(of["stderr"], "it fails\n")
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: "it fails",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: remotecommand.ExitCodeCauseType, Message: command[1]},
			}},
		}
	}
	for name, s := range of {
		if name == "stdout" || name == "stderr" {
			_ = s.Close()
		}
	}
	text, _ := json.Marshal(status)
	_, _ = of["error"].Write(text)
	_ = of["error"].Close()
	select { // the client ends the connection when it has read all
	case <-conn.CloseChan():
	case <-time.After(time.Minute):
	}
}

// forward has ports.
func forward(conn httpstream.Connection, streams <-chan httpstream.Stream) {
	failing := map[string]httpstream.Stream{} // streams of errors, by the number of their request
	for {
		select {
		case s := <-streams:
			id := s.Headers().Get("requestID")
			if s.Headers().Get("streamType") == "error" {
				failing[id] = s
				continue
			}
			go func(errs httpstream.Stream) {
				if s.Headers().Get("port") == "81" {
					_, _ = io.WriteString(errs, "nobody listens at 81")
				} else {
					_, _ = io.Copy(s, s)
				}
				_ = s.Close()
				_ = errs.Close()
			}(failing[id])
		case <-conn.CloseChan():
			return
		}
	}
}
