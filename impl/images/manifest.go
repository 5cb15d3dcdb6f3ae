package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/exchange"
)

// maxManifest bounds a manifest and an index, as containerd does.
const maxManifest = 4 << 20

// Media types of what a manifest says itself to be, or is by its fields.
const (
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// errNoManifest is of content that is neither a manifest nor an index.
var errNoManifest = errors.New("it is no manifest and no index")

// manifest is what is read of one.
type manifest struct {
	MediaType string `json:"mediaType"`
	Manifests []struct {
		Digest string `json:"digest"`
	} `json:"manifests"`
	Config json.RawMessage `json:"config"`
}

// typeOf is the media type of a manifest.
func typeOf(body []byte) (string, error) {
	var m manifest
	if json.Unmarshal(body, &m) != nil {
		return "", errNoManifest
	}
	switch {
	case m.MediaType == ociIndex, m.MediaType == dockerIndex, m.MediaType == ociManifest, m.MediaType == dockerManifest:
		return m.MediaType, nil
	case m.MediaType != "" || m.Manifests == nil && m.Config == nil:
		return "", errNoManifest
	case m.Manifests != nil:
		return ociIndex, nil
	}
	return ociManifest, nil
}

// listed reports whether an index of the store lists a manifest. An index is small, and there are few.
func (s *Store) listed(d exchange.Digest) bool {
	names, err := readNames(s.blobs(), 0)
	if err != nil {
		return false
	}
	for _, name := range names {
		path := filepath.Join(s.blobs(), name)
		if info, err := os.Stat(path); err != nil || info.Size() > maxIndex || info.Size() < int64(len(d.String())) {
			continue
		}
		body, err := os.ReadFile(path)
		if err != nil || len(body) == 0 || body[0] != '{' {
			continue
		}
		var m manifest
		if json.Unmarshal(body, &m) != nil {
			continue
		}
		for _, child := range m.Manifests {
			if child.Digest == d.String() {
				return true
			}
		}
	}
	return false
}

// maxIndex is the largest index that is looked into: some hundred architectures and attestations.
const maxIndex = 256 << 10

// readManifest reads a manifest of the store; false: it is not there, or too large.
func (s *Store) readManifest(d exchange.Digest) ([]byte, bool) {
	file, _, err := s.Open(d)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	return body, err == nil && len(body) <= maxManifest
}

// serveManifest serves a manifest, which is in memory.
func serveManifest(w http.ResponseWriter, req *http.Request, body []byte, count prometheus.Counter) error {
	media, err := typeOf(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", media)
	out := &counted{ResponseWriter: w, count: count, ctx: req.Context()}
	if req.Method == http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	http.ServeContent(out, req, "", time.Time{}, bytes.NewReader(body))
	return nil
}
