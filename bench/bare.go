package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/testca"
)

// Files of a bare server, in its folder. It serves the bytes of bareList, or the file whose path bareFile has, or
// passes requests to the URL of bareCloud, whose certificate bareCA has signed.
const (
	bareList  = "list"
	bareFile  = "file"
	bareCloud = "cloud"
	bareCA    = "cloud.crt"
)

// bareHandler is what a bare server does.
func bareHandler(dir string) (http.Handler, error) {
	body, err := os.ReadFile(filepath.Join(dir, bareList))
	if err == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		}), nil
	}
	if path, err := os.ReadFile(filepath.Join(dir, bareFile)); err == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			file, err := os.Open(string(path))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			defer file.Close()
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, req, "", time.Time{}, file)
		}), nil
	}
	at, err := os.ReadFile(filepath.Join(dir, bareCloud))
	if err != nil {
		return nil, err
	}
	cloud, err := url.Parse(string(at))
	if err != nil {
		return nil, err
	}
	trust := rest.TLSClientConfig{CAFile: filepath.Join(dir, bareCA)}
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: trust})
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(cloud) },
		FlushInterval: -1, // as a proxy has to that passes watches
		Transport:     &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: config},
	}, nil
}

// ServeBare serves over TLS until ctx ends what the files of dir say, with nothing but net/http. It writes where to the
// file "address". What it costs is the floor of a server in Go.
func ServeBare(ctx context.Context, dir string) error {
	handler, err := bareHandler(dir)
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
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: handler}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := testca.WriteFile(dir, "address", []byte(l.Addr().String())); err != nil {
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

// bare starts a bare server of a list of the hub. stop ends it.
func (r *run) bare(ctx context.Context) (t target, stop func() error, err error) {
	body, err := r.hub.get(ctx, r.hub.client(), slicesPath+"?resourceVersion=0")
	if err != nil {
		return target{}, nil, err
	}
	list, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return target{}, nil, err
	}
	return startBare(ctx, map[string][]byte{bareList: list})
}

// bareProxy starts a bare server that passes requests to the cloud. stop ends it.
func (r *run) bareProxy(ctx context.Context) (t target, stop func() error, err error) {
	t, stop, err = startBare(ctx, map[string][]byte{bareCloud: []byte(r.cloud.url), bareCA: r.cloud.trust.CAData})
	t.name, t.token = "bare proxy", r.cloud.token
	return t, stop, err
}

// startBare starts a process that does ServeBare with some files. stop ends it.
func startBare(ctx context.Context, files map[string][]byte) (t target, stop func() error, err error) {
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
	authority, err := testca.NewAuthority("weir bench")
	if err != nil {
		return target{}, nil, err
	}
	pair, err := authority.Issue(testca.Request{CommonName: "bare", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return target{}, nil, err
	}
	if _, _, err := pair.Write(dir, "serving"); err != nil {
		return target{}, nil, err
	}
	for name, data := range files {
		if _, err := testca.WriteFile(dir, name, data); err != nil {
			return target{}, nil, err
		}
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
