package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const source = "https://github.com/weir-edge/weir"

// sboms is the folder of an image where scanners look for SBOMs of what they cannot see themselves.
const sboms = "usr/share/sbom"

// file is one of an image. All belong to root, so that the process cannot change them.
type file struct {
	name string
	mode int64
	data []byte
}

// image is the image of a product: its programs, the first of which it runs, and beside each what it was built of.
func (of product) image(programs []program, version string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, p := range programs {
		binary, err := os.ReadFile(p.path)
		if err != nil {
			return nil, err
		}
		bill, err := p.sbom(version)
		if err != nil {
			return nil, err
		}
		for _, f := range []file{{p.name, 0o755, binary}, {sboms + "/" + p.name + ".spdx.json", 0o644, bill}} {
			layer, err := f.layer(p.made())
			if err != nil {
				return nil, fmt.Errorf("make a layer of %s: %w", f.name, err)
			}
			layers = append(layers, mutate.Addendum{
				Layer: layer, History: v1.History{Created: v1.Time{Time: p.made()}, CreatedBy: "release: /" + f.name},
			})
		}
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, layers...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	first := programs[0]
	labels := of.labels(first, version)
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", first.arch, v1.Time{Time: first.made()}
	config.Config = v1.Config{User: of.user, Entrypoint: []string{"/" + first.name}, WorkingDir: "/", Labels: labels}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(img, labels).(v1.Image), nil
}

// labels are those of https://specs.opencontainers.org/image-spec/annotations.
func (of product) labels(p program, version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       of.name,
		"org.opencontainers.image.description": of.about,
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.revision":    p.setting("vcs.revision"),
		"org.opencontainers.image.created":     p.made().Format(time.RFC3339),
		"org.opencontainers.image.source":      source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// layer is a file with the folders above it.
func (f file) layer(made time.Time) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	head := tar.Header{Format: tar.FormatUSTAR, ModTime: made.Truncate(time.Second)}
	var above []string
	for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
		above = append([]string{dir}, above...)
	}
	for _, dir := range above {
		h := head
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, dir+"/", 0o755
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
	}
	h := head
	h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeReg, f.name, f.mode, int64(len(f.data))
	if err := w.WriteHeader(&h); err != nil {
		return nil, err
	}
	if _, err := w.Write(f.data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestCompression),
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// size is how many bytes a node fetches.
func size(img v1.Image) (int64, error) {
	m, err := img.Manifest()
	if err != nil {
		return 0, err
	}
	n, err := img.Size()
	n += m.Config.Size
	for _, l := range m.Layers {
		n += l.Size
	}
	return n, err
}
