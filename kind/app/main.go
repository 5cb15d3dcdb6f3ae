// Command app is what the pods of the runtime kind run, in an image of its own, so that nothing has to be pulled: it
// serves its host's name, and gives back what is posted to it. It can also be executed, in a pod or on a node, to say
// something, to give back what it reads, to fetch a URL, or to call one again and again. A pod can write line after
// line, visit a Service by its name, read the Kubernetes API again and again, or write there, as a client does that
// knows nothing but what its kubelet tells it.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const patience = 3 * time.Second

func main() {
	err := run(os.Args[1:])
	var code exit
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case err != nil:
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "say":
		_, err := fmt.Println(args[1])
		return err
	case len(args) == 2 && args[0] == "echo":
		return echo(args[1])
	case len(args) == 2 && args[0] == "talk":
		return talk(args[1])
	case len(args) == 2 && args[0] == "get":
		return get(context.Background(), http.DefaultClient, patience, args[1], os.Stdout)
	case (len(args) == 4 || len(args) == 6) && args[0] == "call":
		every, each, err := times(args[1], args[2])
		if err != nil {
			return err
		}
		var as *tls.Config
		if len(args) == 6 {
			if as, err = credentials(args[4], args[5]); err != nil {
				return err
			}
		}
		return call(every, each, args[3], as)
	case len(args) == 5 && args[0] == "visit" && (args[3] == always || args[3] == once):
		every, each, err := times(args[1], args[2])
		if err != nil {
			return err
		}
		return visit(every, each, args[3], args[4])
	case len(args) > 0 && (args[0] == "read" || args[0] == "write"):
		return inPod(args)
	case len(args) == 0:
		return serve()
	}
	return fmt.Errorf("arguments %q: want none, or: say TEXT, or: echo CODE, or: talk EVERY, or: get URL, or: "+
		"call EVERY PATIENCE URL [CA PAIR], or: visit EVERY PATIENCE always|once URL, or: read EVERY FOLDER NAME, or: "+
		"write NAMESPACE NAME", args)
}

// times are how often a caller calls, and how long each call may take.
func times(every, patience string) (e, p time.Duration, err error) {
	if e, err = time.ParseDuration(every); err == nil {
		p, err = time.ParseDuration(patience)
	}
	return e, p, err
}

func serve() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("app: serving as", host)
	server := &http.Server{
		Addr: ":8080", ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPost {
				_, _ = io.Copy(w, req.Body)
				return
			}
			_, _ = fmt.Fprintln(w, host)
		}),
	}
	return server.ListenAndServe()
}

func get(ctx context.Context, client *http.Client, patience time.Duration, url string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}

// credentials are those of a caller: who may answer it, and a file with its certificate and its key.
func credentials(ca, pair string) (*tls.Config, error) {
	bundle, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(pair, pair)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{own}}
	if !c.RootCAs.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("%s has no certificate", ca)
	}
	return c, nil
}

// call calls until its standard input ends, each time by a new connection, and writes a line for each call: "ok", or
// why it failed. as may be nil.
func call(every, patience time.Duration, url string, as *tls.Config) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: as}}
	out := bufio.NewWriter(os.Stdout)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		said := "ok"
		if err := get(ctx, client, patience, url, io.Discard); err != nil {
			said = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if ctx.Err() != nil {
			return nil
		}
		if _, err := fmt.Fprintln(out, said); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}
