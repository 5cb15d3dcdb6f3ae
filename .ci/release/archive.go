package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// index is one image for several architectures.
func index(images map[string]v1.Image, arches []string) v1.ImageIndex {
	idx := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range arches {
		idx = mutate.AppendManifests(idx, mutate.IndexAddendum{
			Add: images[arch], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return idx
}

// archive writes an index as an OCI layout in a tar file, which ctr, kind, podman, skopeo and crane take. reference is
// the name that it gets there. One of a single architecture is such a file for docker load, too.
func archive(path, reference, tag string, idx v1.ImageIndex, single v1.Image) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write layout: %w", err)
	}
	names := map[string]string{"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": tag}
	if err := l.AppendIndex(idx, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("write layout: %w", err)
	}
	if single != nil {
		if err := describe(dir, reference, single); err != nil {
			return fmt.Errorf("write manifest.json: %w", err)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pack(f, os.DirFS(dir)), f.Close())
}

// describe tells engines that read no OCI layout where in it an image is.
func describe(dir, reference string, img v1.Image) error {
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	blob := func(d v1.Descriptor) string { return "blobs/" + d.Digest.Algorithm + "/" + d.Digest.Hex }
	d := tarball.Descriptor{Config: blob(m.Config), RepoTags: []string{reference}}
	for _, l := range m.Layers {
		d.Layers = append(d.Layers, blob(l))
	}
	text, err := json.Marshal(tarball.Manifest{d})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o644)
}

// pack writes a folder as a tar that tells nothing of when and by whom.
func pack(to io.Writer, from fs.FS) error {
	w := tar.NewWriter(to)
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		h := tar.Header{Format: tar.FormatUSTAR, Name: name, ModTime: time.Unix(0, 0), Mode: 0o644, Typeflag: tar.TypeReg}
		if d.IsDir() {
			h.Name, h.Mode, h.Typeflag = name+"/", 0o755, tar.TypeDir
			return w.WriteHeader(&h)
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		h.Size = int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	return errors.Join(err, w.Close())
}
