package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// archive is one as a release has it, of an image of some name.
func archive(t *testing.T, name string) (path string, of v1.ImageIndex) {
	t.Helper()
	of = must[v1.ImageIndex](t)(random.Index(100, 2, 2))
	dir := t.TempDir()
	l := must[layout.Path](t)(
		layout.Write(dir, mutate.IndexMediaType(empty.Index, "application/vnd.oci.image.index.v1+json")))
	if err := l.AppendIndex(of, layout.WithAnnotations(map[string]string{named: name})); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "image.tar")
	if out, err := exec.CommandContext(t.Context(), "tar", "-cf", path, "-C", dir, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path, of
}

// TestServer: what is in two archives is there by tag, by digest, and layer by layer.
func TestServer(t *testing.T) {
	s := newServer(t.TempDir(), log.New(io.Discard, "", 0))
	h := httptest.NewServer(s.handler)
	t.Cleanup(h.Close)
	get := func(path string) string {
		t.Helper()
		r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+path, nil))
		r.Header.Set("Accept", "*/*")
		a := must[*http.Response](t)(http.DefaultClient.Do(r))
		defer a.Body.Close()
		if a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, a.Status)
		}
		return string(must[[]byte](t)(io.ReadAll(a.Body)))
	}
	for _, name := range []string{"ghcr.io/weir-edge/one:v0.0.1", "ghcr.io/weir-edge/two:v0.0.1"} {
		path, of := archive(t, name)
		if err := s.push(path); err != nil {
			t.Fatal(err)
		}
		repository := "/v2/" + strings.TrimSuffix(strings.TrimPrefix(name, "ghcr.io/"), ":v0.0.1")
		want := string(must[[]byte](t)(of.RawManifest()))
		if got := get(repository + "/manifests/v0.0.1"); got != want {
			t.Errorf("%s by its tag: %s, want %s", name, got, want)
		}
		if got := get(repository + "/manifests/" + must[v1.Hash](t)(of.Digest()).String()); got != want {
			t.Errorf("%s by its digest: %s, want %s", name, got, want)
		}
		for _, d := range must[*v1.IndexManifest](t)(of.IndexManifest()).Manifests {
			get(repository + "/manifests/" + d.Digest.String())
			for _, l := range must[[]v1.Layer](t)(must[v1.Image](t)(of.Image(d.Digest)).Layers()) {
				get(repository + "/blobs/" + must[v1.Hash](t)(l.Digest()).String())
			}
		}
	}
}

// TestServerRefuses tells what is no archive of a release.
func TestServerRefuses(t *testing.T) {
	s := newServer(t.TempDir(), log.New(io.Discard, "", 0))
	for _, name := range []string{"", "one:v1", "ghcr.io/one", "ghcr.io/../one:v1"} {
		path, _ := archive(t, name)
		if err := s.push(path); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
