package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"time"
)

// Bounds of an image.
const (
	MinLayer  = 4 << 10 // bytes of a layer
	MaxLayer  = 4 << 30
	MaxLayers = 20

	block = 512 // of a tar
	// frame is what a tar of one file has beside it: a header, and two empty blocks at the end.
	frame = 3 * block

	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"

	// named is the annotation by which an archive names its image, as containerd reads and writes it.
	named = "io.containerd.image.name"
)

// name is one of an image: host, repository, tag.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// Image says what an image is made of.
type Image struct {
	Name   string  // registry/repository:tag; a registry without a port
	Seed   int64   // decides the content of its layers
	Layers []int64 // their sizes in bytes, each rounded up to whole blocks of a tar
}

// Registry is the registry of an image, by its name.
func (m Image) Registry() string {
	host, _, _ := strings.Cut(m.Name, "/")
	return host
}

// Validate tells what is wrong with it.
func (m Image) Validate() error {
	if !name.MatchString(m.Name) {
		return fmt.Errorf("image %q: want registry/repository:tag", m.Name)
	}
	if n := len(m.Layers); n < 1 || n > MaxLayers {
		return fmt.Errorf("image %s: %d layers: want 1 to %d", m.Name, n, MaxLayers)
	}
	for _, size := range m.Layers {
		if size < MinLayer || size > MaxLayer {
			return fmt.Errorf("image %s: a layer of %d bytes: want %d to %d", m.Name, size, int64(MinLayer), int64(MaxLayer))
		}
	}
	return nil
}

// descriptor is one of the OCI image format.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// manifests are an index, or what is above all of them in an archive.
type manifests struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type config struct {
	platform
	RootFS rootFS `json:"rootfs"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// architectures of an image. One of them is that of the machine.
func architectures() []string { return []string{"amd64", "arm64"} }

// WriteArchive writes an image as an OCI archive, and returns what one pull of it brings to a machine: an index, a
// manifest, a configuration and all layers.
func (m Image) WriteArchive(path string) (pulled int64, err error) {
	if err := m.Validate(); err != nil {
		return 0, err
	}
	f, err := os.Create(path)
	if err != nil {
		return 0, fmt.Errorf("write image %s: %w", m.Name, err)
	}
	a := &archive{w: tar.NewWriter(f)}
	pulled = a.image(m)
	a.keep(a.w.Close())
	a.keep(f.Close())
	if a.err != nil {
		return 0, fmt.Errorf("write image %s: %w", m.Name, a.err)
	}
	return pulled, nil
}

// archive is one that is being written. After an error it takes no more.
type archive struct {
	w   *tar.Writer
	err error
}

func (a *archive) keep(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *archive) image(m Image) (pulled int64) {
	for _, folder := range []string{"blobs/", "blobs/sha256/"} {
		a.keep(a.w.WriteHeader(&tar.Header{Name: folder, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(0, 0)}))
	}
	var layers []descriptor
	for i, size := range m.Layers {
		d := a.layer(m.Seed, i, size)
		layers, pulled = append(layers, d), pulled+d.Size
	}
	fs := rootFS{Type: "layers"}
	for _, l := range layers {
		fs.DiffIDs = append(fs.DiffIDs, l.Digest) // a layer is not compressed
	}
	index := manifests{SchemaVersion: 2, MediaType: indexType}
	for i, arch := range architectures() {
		p := platform{arch, "linux"}
		c := a.json(configType, config{p, fs})
		d := a.json(manifestType, manifest{2, manifestType, c, layers})
		if i == 0 { // those of the other have the same size: the names do
			pulled += c.Size + d.Size
		}
		d.Platform = &p
		index.Manifests = append(index.Manifests, d)
	}
	top := a.json(indexType, index)
	pulled += top.Size
	top.Annotations = map[string]string{named: m.Name}
	for file, content := range map[string]any{
		"oci-layout": map[string]string{"imageLayoutVersion": "1.0.0"},
		"index.json": manifests{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{top}},
	} {
		data, err := json.Marshal(content)
		a.keep(err)
		a.file(file, int64(len(data)), all(data))
	}
	return pulled
}

// json writes a blob that says v.
func (a *archive) json(mediaType string, v any) descriptor {
	data, err := json.Marshal(v)
	a.keep(err)
	sum := sha256.Sum256(data)
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
	a.file("blobs/sha256/"+hex.EncodeToString(sum[:]), d.Size, all(data))
	return d
}

// all writes what is there already.
func all(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// layer writes a layer. It is made twice, since its name in the archive is its digest, and nothing so large is kept.
func (a *archive) layer(seed int64, i int, size int64) descriptor {
	size = (size + block - 1) / block * block
	h := sha256.New()
	a.keep(writeLayer(h, seed, i, size))
	sum := hex.EncodeToString(h.Sum(nil))
	a.file("blobs/sha256/"+sum, size, func(w io.Writer) error { return writeLayer(w, seed, i, size) })
	return descriptor{MediaType: layerType, Digest: "sha256:" + sum, Size: size}
}

// file writes a file of the archive.
func (a *archive) file(name string, size int64, write func(io.Writer) error) {
	if a.err != nil {
		return
	}
	a.keep(a.w.WriteHeader(&tar.Header{
		Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0),
	}))
	if a.err == nil {
		a.keep(write(a.w))
	}
}

// writeLayer writes a tar of one file that nothing makes smaller.
func writeLayer(w io.Writer, seed int64, i int, size int64) error {
	t := tar.NewWriter(w)
	h := &tar.Header{
		Name: fmt.Sprintf("layer-%d", i+1), Typeflag: tar.TypeReg, Mode: 0o644, Size: size - frame, ModTime: time.Unix(0, 0),
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	var key [32]byte
	copy(key[:], fmt.Sprintf("%d/%d", seed, i))
	_, err := io.CopyN(t, rand.NewChaCha8(key), h.Size)
	return errors.Join(err, t.Close())
}
