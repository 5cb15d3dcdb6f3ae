package main

import (
	"fmt"
	"net/http"
)

// maxReference is what a reference of an image may have, as Kubernetes has it.
const maxReference = 1024

func (p *puller) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("POST /pull", func(w http.ResponseWriter, r *http.Request) {
		image := r.FormValue("image")
		if image == "" || len(image) > maxReference {
			start := image[:min(len(image), 100)]
			http.Error(w, fmt.Sprintf("image %q: want a reference of at most %d bytes", start, maxReference),
				http.StatusBadRequest)
			return
		}
		if err := p.pull(r.Context(), image); err != nil {
			fmt.Println("pull:", err)
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprintln(w, "pulled")
	})
	return mux
}
