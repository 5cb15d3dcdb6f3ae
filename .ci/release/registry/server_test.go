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

// TestServerGoesOn: a pull that broke goes on from the byte where it was, and what is not there is refused.
func TestServerGoesOn(t *testing.T) {
	s := newServer(t.TempDir(), log.New(io.Discard, "", 0))
	path, of := archive(t, "ghcr.io/weir-edge/one:v0.0.1")
	if err := s.push(path); err != nil {
		t.Fatal(err)
	}
	image := must[v1.Image](t)(of.Image(must[*v1.IndexManifest](t)(of.IndexManifest()).Manifests[0].Digest))
	layer := must[[]v1.Layer](t)(image.Layers())[0]
	digest := must[v1.Hash](t)(layer.Digest())
	data := must[[]byte](t)(io.ReadAll(must[io.ReadCloser](t)(layer.Compressed())))
	for _, c := range []struct {
		digest, part string
		status       int
		want         string
	}{
		{digest.String(), "", http.StatusOK, string(data)},
		{digest.String(), "bytes=40-", http.StatusPartialContent, string(data[40:])},
		{digest.String(), "bytes=40-49", http.StatusPartialContent, string(data[40:50])},
		{digest.String(), "bytes=1000000-", http.StatusRequestedRangeNotSatisfiable, ""},
		{"sha256:" + strings.Repeat("0", 64), "bytes=40-", http.StatusNotFound, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/weir-edge/one/blobs/"+c.digest, nil)
		if c.part != "" {
			r.Header.Set("Range", c.part)
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != c.status || c.want != "" && w.Body.String() != c.want {
			t.Errorf("%s of %s: %d and %d bytes, want %d and %d", c.part, c.digest, w.Code, w.Body.Len(), c.status, len(c.want))
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
