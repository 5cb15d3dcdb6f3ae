package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How often a visitor asks for the address of a name.
const (
	always = "always" // at each call
	once   = "once"   // when it starts, until it is told
)

// visit calls a URL until it is told to end, each time by a new connection, and writes a line for each call: when it
// began, how long it took, and who answered or why it failed. A call that waits does not keep the next from its time.
func visit(every, patience time.Duration, asks, at string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if asks == once {
		address, err := resolved(ctx, u.Hostname(), every)
		if err != nil {
			return err
		}
		transport.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(to)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(address, port))
		}
	}
	client := &http.Client{Transport: transport}
	var (
		writing sync.Mutex
		calls   sync.WaitGroup
	)
	defer calls.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		calls.Go(func() {
			var host bytes.Buffer
			began := time.Now()
			stage := &stage{}
			err := get(stage.of(ctx), client, patience, at, &host)
			if ctx.Err() != nil {
				return
			}
			said := strings.TrimSpace(host.String())
			if err != nil {
				said = "failed: " + stage.String() + ": " + strings.ReplaceAll(err.Error(), "\n", " ")
			}
			writing.Lock()
			defer writing.Unlock()
			fmt.Println(began.UTC().Format(time.RFC3339Nano), time.Since(began), said)
		})
	}
}

// stage is how far a call came. It is safe for concurrent use.
type stage struct{ at atomic.Value }

func (s *stage) of(ctx context.Context) context.Context {
	s.at.Store("looking up")
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart:         func(_, to string) { s.at.Store("connecting to " + to) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { s.at.Store("waiting for an answer") },
		GotFirstResponseByte: func() { s.at.Store("reading") },
	})
}

func (s *stage) String() string { return fmt.Sprint(s.at.Load()) }

// resolved is the address of a name.
func resolved(ctx context.Context, name string, every time.Duration) (string, error) {
	for {
		found, err := net.DefaultResolver.LookupHost(ctx, name)
		if err == nil {
			return found[0], nil
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(every):
		}
	}
}
