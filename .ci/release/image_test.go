package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdx "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// small is a repository of the same form as this one, whose commands need nothing: they say their version, who runs
// them and how.
func small(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"go.mod":              "module github.com/weir-edge/weir\n\ngo 1.26.0\n",
		"impl/cli/version.go": "package cli\n\nvar version string\n\nfunc Version() string { return version }\n",
	}
	for _, p := range products {
		files["impl/cmd/"+p.name+"/main.go"] = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n" +
			"\t\"github.com/weir-edge/weir/impl/cli\"\n)\n\n" +
			"func main() {\n\tfmt.Print(\"" + p.name + " \", cli.Version(), \" \", os.Getuid())\n\tfor _, a := range " +
			"os.Args[1:] {\n\t\tfmt.Print(\" \" + a)\n\t}\n\tfmt.Println()\n}\n"
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// build makes the images of a repository, and returns what was printed.
func build(t *testing.T, root string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"images", "-root", root, "-version", "v0.0.1-test"}, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestReproducible: what is built twice, in two folders at two times, is the same, byte for byte.
func TestReproducible(t *testing.T) {
	one, two := small(t), small(t)
	first, second := build(t, one), build(t, two)
	if first != second || strings.Count(first, "@sha256:") != len(everyImage()) {
		t.Errorf("built twice:\n%s\n%s", first, second)
	}
	for _, p := range everyImage() {
		if a, b := content(t, one, p.name), content(t, two, p.name); !bytes.Equal(a, b) {
			t.Errorf("the archives of %s differ", p.name)
		}
	}
}

func content(t *testing.T, root, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "bin/images", name+".tar"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestArchive reads what was written as others do: the layout, each image of it, its files with their modes, and what
// it was built of. The program runs as the user that the image names.
func TestArchive(t *testing.T) {
	root := small(t)
	build(t, root)
	for _, p := range everyImage() {
		t.Run(p.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "layout")
			if names := unpack(t, bytes.NewReader(content(t, root, p.name)), dir); !slices.Contains(names, "oci-layout") {
				t.Errorf("no OCI layout: %v", names)
			}
			l, err := layout.FromPath(dir)
			if err != nil {
				t.Fatal(err)
			}
			top, err := l.ImageIndex()
			if err != nil {
				t.Fatal(err)
			}
			m, err := top.IndexManifest()
			if err != nil || len(m.Manifests) != 1 {
				t.Fatalf("%+v, %v", m, err)
			}
			if got := m.Manifests[0].Annotations["io.containerd.image.name"]; got != "ghcr.io/weir-edge/"+p.name+":v0.0.1-test" {
				t.Errorf("its name is %q", got)
			}
			idx, err := top.ImageIndex(m.Manifests[0].Digest)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(idx); err != nil {
				t.Error(err)
			}
			each, err := idx.IndexManifest()
			if err != nil || len(each.Manifests) != len(known) {
				t.Fatalf("%+v, %v", each, err)
			}
			for i, arch := range known {
				img, err := idx.Image(each.Manifests[i].Digest)
				if err != nil {
					t.Fatal(err)
				}
				if got := each.Manifests[i].Platform.String(); got != "linux/"+arch {
					t.Errorf("platform %s", got)
				}
				checkImage(t, p, arch, img)
			}
		})
	}
}

// TestForEngines: an archive of one architecture is one of docker load, too, with the very same image; and no other
// image is made than the one that is asked for.
func TestForEngines(t *testing.T) {
	root := small(t)
	if err := run(t.Context(), strings.Fields("images -root "+root+" -version v1 -arch amd64 -only weir-coordinator"),
		io.Discard); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(root, "bin/images/*"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	tag, err := name.NewTag("ghcr.io/weir-edge/weir-coordinator:v1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(made[0], &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	c, err := img.ConfigFile()
	if err != nil || !slices.Equal(c.Config.Entrypoint, []string{"/weir-coordinator"}) || c.Architecture != "amd64" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestByContent: of the images that are asked for, each has the tag of what is in it, so that a cluster notices another
// one. The tag changes nothing else.
func TestByContent(t *testing.T) {
	root := small(t)
	made := func(args string) map[string]string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields("images -root "+root+" -version v1 -arch amd64 "+args), &out); err != nil {
			t.Fatal(err)
		}
		tags := map[string]string{}
		for _, m := range regexp.MustCompile(`/([a-z-]+):(\S+)@(\S+)`).FindAllStringSubmatch(out.String(), -1) {
			tags[m[1]+"@"+m[3]] = m[2]
		}
		return tags
	}
	plain, tagged := made("-only weir-manager,weir-hub"), made("-only weir-manager,weir-hub -by-content")
	if len(plain) != 2 || len(tagged) != 2 {
		t.Fatalf("%v, %v", plain, tagged)
	}
	for image, tag := range plain {
		_, digest, _ := strings.Cut(image, "@sha256:")
		if want := "v1-" + digest[:12]; tag != "v1" || tagged[image] != want {
			t.Errorf("%s: tags %q and %q, want v1 and %s", image, tag, tagged[image], want)
		}
		short, _, _ := strings.Cut(image, "@")
		reference, err := name.NewTag("ghcr.io/weir-edge/" + short + ":" + tagged[image])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tarball.ImageFromPath(filepath.Join(root, "bin/images", short+".tar"), &reference); err != nil {
			t.Error(err)
		}
	}
}

func checkImage(t *testing.T, p bundle, arch string, img v1.Image) {
	t.Helper()
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Architecture != arch || c.OS != "linux" || c.Config.User != p.user ||
		!slices.Equal(c.Config.Entrypoint, []string{"/" + p.of[0]}) {
		t.Errorf("%s: %+v", arch, c)
	}
	for _, label := range []string{"title", "version", "revision", "created", "source", "licenses", "description"} {
		if _, ok := c.Config.Labels["org.opencontainers.image."+label]; !ok {
			t.Errorf("%s: no label %s", arch, label)
		}
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, layer := range layers {
		r, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		plain, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, unpack(t, plain, dir)...)
	}
	var want []string
	for _, name := range p.of {
		bill := "usr/share/sbom/" + name + ".spdx.json"
		want = append(want, name, "usr/", "usr/share/", "usr/share/sbom/", bill)
		for name, mode := range map[string]os.FileMode{name: 0o755, bill: 0o644, "usr/share": 0o755 | os.ModeDir} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode() != mode {
				t.Errorf("%s: %s: %v, %v", arch, name, info, err)
			}
		}
		checkBill(t, filepath.Join(dir, bill), name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s: files %v, want %v", arch, names, want)
	}
	if arch != "amd64" || os.Getuid() != 0 { // only root can become the image's user
		return
	}
	// Like a container: the image is all there is, and the user is the image's.
	user, _, _ := strings.Cut(p.user, ":")
	id, err := strconv.Atoi(user)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/" + p.of[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != p.of[0]+" v0.0.1-test "+user+"\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func checkBill(t *testing.T, path, name string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := spdx.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	if len(doc.Packages) != 2 || doc.Packages[0].PackageName != name || doc.Packages[1].PackageName != "stdlib" ||
		len(doc.Relationships) != 2 {
		t.Errorf("%+v", doc.Packages)
	}
}

// unpack writes the files of a tar, which must belong to root, and returns their names.
func unpack(t *testing.T, from io.Reader, dir string) (names []string) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(h.ModTime.Truncate(1e9)) {
			t.Errorf("%+v", h)
		}
		names = append(names, h.Name)
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, os.FileMode(h.Mode)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, data, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBillOfItself: this test's own binary has dependencies, and all of them are told.
func TestBillOfItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := read(product{name: "itself"}, "amd64", self)
	if err != nil {
		t.Skip(err) // on another architecture
	}
	data, err := p.sbom("v1")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := spdx.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	if len(doc.Packages) != 2+len(p.info.Deps) || len(p.info.Deps) < 4 {
		t.Errorf("%d packages of %d modules", len(doc.Packages), len(p.info.Deps))
	}
	if !json.Valid(data) || !bytes.Contains(data, []byte("pkg:golang/github.com/google/go-containerregistry@")) {
		t.Error("go-containerregistry is not told")
	}
}

// TestTooLarge: an image that outgrows its row is an error.
func TestTooLarge(t *testing.T) {
	root := small(t)
	noise := make([]byte, 26<<20) // does not compress
	for i, x := 0, uint64(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		noise[i] = byte(x)
	}
	dir := filepath.Join(root, "impl/cmd/weir-manager")
	if err := os.WriteFile(filepath.Join(dir, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	source := "package main\n\nimport _ \"embed\"\n\n//go:embed noise\nvar noise string\n\nfunc main() { " +
		"println(noise) }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"images", "-root", root, "-version", "v1", "-arch", "amd64"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "image of weir-manager: amd64 has 2") ||
		!strings.Contains(err.Error(), "more than 25 MB") {
		t.Errorf("%v", err)
	}
}

// TestBadInput: each is refused with a line that says what is wanted.
func TestBadInput(t *testing.T) {
	root := small(t)
	for args, want := range map[string]string{
		"":                                     `verb ""`,
		"push -version v1":                     `verb "push": want images or all`,
		"images":                               `-version "": want`,
		"images -version v1+dirty":             `-version "v1+dirty": want`,
		"images -version v1 -arch amd64,amd64": `-arch "amd64,amd64": want each of amd64, arm64 at most once`,
		"images -version v1 -arch s390x":       `-arch "s390x": want`,
		"images -version v1 more":              `argument "more"`,
		"images -version v1 -repository A/B":   `-repository "A/B": want`,
		"images -version v1 -only weir":        `-only "weir": want`,
		"images -version v1 -only weir-hub,x":  `-only "weir-hub,x": want`,
		"all -version v1 -by-content":          "-by-content: want",
		"all -version v1 -only weir-hub":       `-only "weir-hub": want`,
		"images -version v1 -nothing":          "flag provided but not defined",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard)
		if args == "" {
			err = run(t.Context(), []string{"-version", "v1"}, io.Discard)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
		if !errors.As(err, new(usageError)) {
			t.Errorf("%s: %T", args, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "impl/cmd/weir-new"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"images", "-root", root, "-version", "v1"}, io.Discard)
	if err == nil || err.Error() != "impl/cmd/weir-new: the table of products has no row for it" {
		t.Error(fmt.Sprint(err))
	}
}
