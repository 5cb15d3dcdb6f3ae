// Command puller is the part of a node's containerd that pulls images: its own resolver, fetchers and content store,
// in a process that can be killed and started again. There is no container and no snapshot.
//
// It reads certs.d (--certs-dir) as containerd does, keeps its content and metadata below --root where containerd
// keeps them, and fetches three blobs at once, the default of the CRI plugin. A pull that brings no byte for five
// minutes is given up, as there. What was fetched in part stays, and the next pull goes on behind it.
//
//	GET  /healthz
//	POST /pull?image=REF  pulls an image; the answer says how, when the pull has ended
//
// The kubelet's part, to ask again after a while, is the caller's.
//
// It is a program of a module of its own. The testbed and the product share one go.mod, which has Kubernetes' versions
// of gRPC and OpenTelemetry: containerd asks for newer ones, and for a newer Go. Some 240 packages would be compiled
// with each test, and each update of Kubernetes would wait for containerd's. The testbed needs a process anyway: it
// kills it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "puller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	fs := flag.NewFlagSet("puller", flag.ContinueOnError)
	listen := fs.String("listen", "", "address and port of the testbed's requests")
	var c config
	fs.StringVar(&c.root, "root", "", "folder of content and metadata, as containerd's root")
	fs.StringVar(&c.certs, "certs-dir", "", "folder of hosts.toml, by registries: certs.d")
	fs.DurationVar(&c.patience, "image-pull-progress-timeout", 5*time.Minute,
		"how long a pull may bring no byte; as containerd's")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("argument %q: want flags only", fs.Arg(0))
	case *listen == "" || c.root == "" || c.certs == "":
		return errors.New("want --listen, --root and --certs-dir")
	case c.patience <= 0:
		return fmt.Errorf("--image-pull-progress-timeout=%v: want more than 0", c.patience)
	}
	p, err := newPuller(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	s := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
