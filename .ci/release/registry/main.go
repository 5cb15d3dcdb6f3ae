// Command registry is the registry from which machines of a test pull images of releases: it serves what is in OCI
// archives, by plain HTTP and until it is killed. It is no registry for people: who reaches it may read and write all
// of it.
//
// GET /healthz says ok as soon as all archives are there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("registry ARCHIVE…", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address and port; 0 is a free one, which is printed")
	dir := flags.String("dir", "", "empty folder for what is served; by default a temporary one, which is removed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		temp, err := os.MkdirTemp("", "weir-registry-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		*dir = temp
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", *listen)
	if err != nil {
		return err
	}
	s := newServer(*dir, log.New(os.Stderr, "", log.LstdFlags))
	for _, path := range flags.Args() {
		if err := s.push(path); err != nil {
			return fmt.Errorf("archive %s: %w", path, err)
		}
	}
	h := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	fmt.Println(l.Addr())
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
