package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// named is the annotation by which an archive of a release names its image.
const named = "io.containerd.image.name"

// name is one of an image: host, repository, tag.
var name = regexp.MustCompile(`^[^/]+/([a-z0-9][a-z0-9._/-]*):([A-Za-z0-9_][A-Za-z0-9_.-]*)$`)

// server is a registry. The blobs of an OCI layout stand as it wants its own, so all archives are unpacked into one
// folder.
type server struct {
	handler http.Handler
	dir     string
}

func newServer(dir string, to *log.Logger) *server {
	all := http.NewServeMux()
	all.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	blobs := registry.NewDiskBlobHandler(filepath.Join(dir, "blobs"))
	all.Handle("/", parts(dir, registry.New(registry.Logger(to), registry.WithBlobHandler(blobs))))
	return &server{all, dir}
}

// blob is the path of one.
var blob = regexp.MustCompile(`^/v2/[a-z0-9][a-z0-9._/-]*/blobs/(sha256):([0-9a-f]{64})$`)

// parts serves blobs as registries do that machines pull from: also a part of one from some byte on, with which a pull
// goes on that broke. That form of a range (bytes=N-) package registry refuses.
func parts(dir string, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names := blob.FindStringSubmatch(r.URL.Path)
		if names == nil || r.Method != http.MethodGet {
			others.ServeHTTP(w, r)
			return
		}
		f, err := os.Open(filepath.Join(dir, "blobs", names[1], names[2]))
		if err != nil {
			others.ServeHTTP(w, r) // it says how a blob is refused
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Docker-Content-Digest", names[1]+":"+names[2])
		http.ServeContent(w, r, "", time.Time{}, f)
	})
}

// push takes the images of an archive, by the names that they have in it.
func (s *server) push(path string) error {
	if err := s.unpack(path); err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(s.dir)
	if err != nil {
		return err
	}
	all, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range all.Manifests {
		parts := name.FindStringSubmatch(d.Annotations[named])
		if parts == nil {
			return fmt.Errorf("annotation %s=%q: want host/repository:tag", named, d.Annotations[named])
		}
		if err := s.manifest(index, d, parts[1], parts[2]); err != nil {
			return err
		}
	}
	return nil
}

// manifest gives the registry an index, after the images that it names.
func (s *server) manifest(in v1.ImageIndex, d v1.Descriptor, repository, reference string) error {
	index, err := in.ImageIndex(d.Digest)
	if err != nil {
		return err
	}
	all, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, image := range all.Manifests {
		if err := s.put(image, repository, image.Digest.String()); err != nil {
			return err
		}
	}
	return s.put(d, repository, reference)
}

func (s *server) put(d v1.Descriptor, repository, reference string) error {
	data, err := os.ReadFile(filepath.Join(s.dir, "blobs", d.Digest.Algorithm, d.Digest.Hex))
	if err != nil {
		return err
	}
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPut, "/v2/"+repository+"/manifests/"+reference,
		bytes.NewReader(data))
	r.Header.Set("Content-Type", string(d.MediaType))
	said := httptest.NewRecorder()
	s.handler.ServeHTTP(said, r)
	if said.Code != http.StatusCreated {
		return fmt.Errorf("%s:%s: %d %s", repository, reference, said.Code, said.Body)
	}
	return nil
}

// unpack writes the files of an archive, over those of the one before.
func (s *server) unpack(archive string) (err error) {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		to := filepath.Join(s.dir, path.Clean("/"+h.Name))
		switch {
		case strings.HasSuffix(h.Name, "/"):
			err = os.MkdirAll(to, 0o755)
		case h.Typeflag == tar.TypeReg:
			err = write(to, r)
		default:
			err = fmt.Errorf("%s is no file", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, from io.Reader) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
