// Command web is what the pods of the specs run: it serves its host's name, and can be executed in a pod to say something or to
// fetch a URL. It is built into an image of its own, so that the specs need no image that somebody would have to pull.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const patience = 3 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "say":
		_, err := fmt.Println(args[1])
		return err
	case len(args) == 2 && args[0] == "get":
		return get(args[1])
	case len(args) == 0:
		return serve()
	}
	return fmt.Errorf("arguments %q: want none, or: say TEXT, or: get URL", args)
}

func serve() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("web: serving as", host)
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, host)
	})}
	return server.ListenAndServe()
}

func get(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}
