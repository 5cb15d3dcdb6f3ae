package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/pki"
	"github.com/weir-edge/weir/sim/proc"
)

// ServeBare serves the bytes of the file "list" in dir over TLS until ctx ends, with nothing but net/http. It writes
// where to the file "address". What it costs is the floor of a server in Go.
func ServeBare(ctx context.Context, dir string) error {
	body, err := os.ReadFile(filepath.Join(dir, "list"))
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "serving.crt"), filepath.Join(dir, "serving.key"))
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		}),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := pki.WriteFile(dir, "address", []byte(l.Addr().String())); err != nil {
		return err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	}
	if err := server.Serve(tls.NewListener(l, config)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// bare starts a process that does ServeBare with a list of the hub. stop ends it.
func (r *run) bare(ctx context.Context) (t target, stop func() error, err error) {
	s, err := proc.New()
	if err != nil {
		return target{}, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	dir, err := s.Scratch("bare")
	if err != nil {
		return target{}, nil, err
	}
	body, err := r.hub.get(ctx, r.hub.client(), slicesPath+"?resourceVersion=0")
	if err != nil {
		return target{}, nil, err
	}
	list, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return target{}, nil, err
	}
	authority, err := pki.NewAuthority("weir bench")
	if err != nil {
		return target{}, nil, err
	}
	pair, err := authority.Issue(pki.Request{CommonName: "bare", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return target{}, nil, err
	}
	if _, _, err := pair.Write(dir, "serving"); err != nil {
		return target{}, nil, err
	}
	if _, err := pki.WriteFile(dir, "list", list); err != nil {
		return target{}, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return target{}, nil, err
	}
	p, err := s.Start(proc.Spec{
		Name: "bare server", Path: self, Args: []string{Command, "--" + ServeBareFlag, dir},
		LogFile: filepath.Join(dir, "log"),
	})
	if err != nil {
		return target{}, nil, err
	}
	var address []byte
	err = waitFor(ctx, nil, func() bool {
		address, err = os.ReadFile(filepath.Join(dir, "address"))
		return err == nil && len(address) > 0 || !p.Running()
	})
	if err != nil {
		return target{}, nil, err
	}
	if len(address) == 0 {
		return target{}, nil, fmt.Errorf("the bare server does not run: %w", p.Err())
	}
	trust := rest.TLSClientConfig{CAData: authority.CertPEM()}
	return target{name: "bare server", url: "https://" + string(address), trust: trust, part: p}, s.Close, nil
}
