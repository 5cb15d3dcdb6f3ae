package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAll: a release has all that people install, with a checksum of each, and made twice it is the same.
func TestAll(t *testing.T) {
	helm, err := filepath.Abs("../../bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(helm); err != nil {
		t.Fatalf("%v: make bin/helm builds it", err)
	}
	lists := make([]string, 2)
	for i := range lists {
		root := small(t)
		if err := os.CopyFS(filepath.Join(root, "charts/weir"), os.DirFS("../../charts/weir")); err != nil {
			t.Fatal(err)
		}
		old := time.Unix(int64(1e9*i), 0) // as if it had been checked out then
		if err := os.Chtimes(filepath.Join(root, "charts/weir/values.yaml"), old, old); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := run(t.Context(), []string{"all", "-root", root, "-version", "v0.3.0-rc.1", "-helm", helm},
			&out); err != nil {
			t.Fatal(err)
		}
		lists[i] = checkSums(t, filepath.Join(root, "bin/release"))
		if !strings.Contains(out.String(), lists[i]) {
			t.Errorf("the checksums are not printed:\n%s", out.String())
		}
		if page, err := os.ReadFile(filepath.Join(root, "bin/release/kubectl-weir.1")); err != nil ||
			!strings.HasPrefix(string(page), "kubectl-weir v0.3.0-rc.1 ") || !strings.HasSuffix(string(page), " man\n") {
			t.Errorf("the manual page is %q, %v", page, err)
		}
		checkPlain(t, filepath.Join(root, "bin/release/weir.yaml"), out.String())
	}
	if lists[0] != lists[1] {
		t.Errorf("made twice:\n%s\n%s", lists[0], lists[1])
	}
	files := []string{"weir-0.3.0-rc.1.tgz", "weir.yaml", "kubectl-weir.1"}
	for _, p := range everyImage() {
		files = append(files, p.name+".tar")
	}
	for _, p := range products {
		for _, arch := range known {
			files = append(files, p.name+"-linux-"+arch, p.name+"-linux-"+arch+".spdx.json")
		}
	}
	for _, want := range files {
		if !strings.Contains(lists[0], "  "+want+"\n") {
			t.Errorf("the release lacks %s:\n%s", want, lists[0])
		}
	}
	if n := strings.Count(lists[0], "\n"); n != len(files) {
		t.Errorf("%d files, want %d:\n%s", n, len(files), lists[0])
	}
}

// checkSums compares each file with its checksum.
func checkSums(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(dir, name))
		if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	return string(list)
}

// checkPlain: who has no Helm gets the very images of this release.
func checkPlain(t *testing.T, path, printed string) {
	t.Helper()
	plain, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for field, name := range map[string]string{
		"image": "weir-manager", "images": "weir-installer", "release": "weir-coordinator",
	} {
		_, digest, _ := strings.Cut(printed, name+":v0.3.0-rc.1@")
		digest, _, _ = strings.Cut(digest, "\n")
		if want := field + `: "ghcr.io/weir-edge/` + name + `@` + digest + `"`; digest == "" ||
			!strings.Contains(string(plain), want) {
			t.Errorf("the plain manifests do not have %s", want)
		}
	}
	for _, never := range []string{"helm.sh/hook:", "monitoring.coreos.com"} {
		if strings.Contains(string(plain), never) {
			t.Errorf("the plain manifests have %s", never)
		}
	}
}

// TestReleaseVersion: a chart has a version by semver, so has a release.
func TestReleaseVersion(t *testing.T) {
	for _, bad := range []string{"devel", "0.1.0", "v1", "v1.2.3.4", "v01.2.3"} {
		err := run(t.Context(), []string{"all", "-root", small(t), "-version", bad}, &bytes.Buffer{})
		if !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), "v0.1.0-rc.1") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
