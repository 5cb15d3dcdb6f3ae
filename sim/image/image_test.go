package image

import (
	"archive/tar"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// read returns the files of a tar.
func read(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}

func made(t *testing.T, m Image) (files map[string][]byte, pulled int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	pulled, err := m.WriteArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, bytes.NewReader(data)), pulled
}

// TestWriteArchive: all that the index leads to is there under its digest and of its size, a pull brings what is said,
// and layers are tars that cannot be compressed.
func TestWriteArchive(t *testing.T) {
	m := Image{Name: "registry.weir.test/weir/app:v1", Seed: 7, Layers: []int64{100_000, 4096, 50_001}}
	files, pulled := made(t, m)
	blob := func(d descriptor) []byte {
		t.Helper()
		data, ok := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		sum := sha256.Sum256(data)
		if !ok || int64(len(data)) != d.Size || d.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Fatalf("blob %+v: there %v, %d bytes", d, ok, len(data))
		}
		return data
	}
	parse := func(data []byte, v any) {
		t.Helper()
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatal(err)
		}
	}
	var top, index manifests
	parse(files["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations[named] != m.Name {
		t.Fatalf("the archive has %+v, want %s", top.Manifests, m.Name)
	}
	parse(blob(top.Manifests[0]), &index)
	if len(index.Manifests) != 2 {
		t.Fatalf("the index has %+v, want two platforms", index.Manifests)
	}
	for _, d := range index.Manifests {
		var one manifest
		var c config
		parse(blob(d), &one)
		parse(blob(one.Config), &c)
		if c.platform != *d.Platform || len(c.RootFS.DiffIDs) != len(one.Layers) || len(one.Layers) != 3 {
			t.Errorf("%+v: %+v, %+v", d, one, c)
		}
		want := int64(len(blob(top.Manifests[0]))) + d.Size + one.Config.Size
		for i, l := range one.Layers {
			want += l.Size
			data := blob(l)
			if l.Size < m.Layers[i] || l.Size >= m.Layers[i]+block || c.RootFS.DiffIDs[i] != l.Digest ||
				len(read(t, bytes.NewReader(data))) != 1 {
				t.Errorf("layer %d: %+v, want %d bytes", i, l, m.Layers[i])
			}
			var small bytes.Buffer
			w, _ := flate.NewWriter(&small, flate.BestCompression)
			if _, err := w.Write(data); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			if small.Len() < len(data)-frame {
				t.Errorf("layer %d is compressed from %d to %d bytes", i, len(data), small.Len())
			}
		}
		if want != pulled {
			t.Errorf("a pull for %s brings %d bytes, and %d are said", d.Platform.Architecture, want, pulled)
		}
	}
	again, _ := made(t, m)
	m.Seed++
	other, _ := made(t, m)
	index1, index2, index3 := files["index.json"], again["index.json"], other["index.json"]
	if !bytes.Equal(index1, index2) || bytes.Equal(index1, index3) {
		t.Error("the same seed has to give the same image, and another seed another one")
	}
}

// TestValidate names what is no image.
func TestValidate(t *testing.T) {
	for want, m := range map[string]Image{
		"want registry/repository:tag": {Name: "app", Layers: []int64{5000}},
		"0 layers":                     {Name: "r.test/app:v1"},
		"a layer of 100 bytes":         {Name: "r.test/app:v1", Layers: []int64{100}},
		"21 layers":                    {Name: "r.test/app:v1", Layers: make([]int64, 21)},
	} {
		if _, err := m.WriteArchive(filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", m, err, want)
		}
	}
}
