package operator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRedact: what looks like a secret goes, and what stands around it stays.
func TestRedact(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLW9mLXRlc3Q"
	for in, want := range map[string]string{
		"a -----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY----- b": "a REMOVED b",
		"x: |\n  -----BEGIN PRIVATE KEY-----\n  MII\n  cut off":                    "x: |\n  REMOVED",
		"MHcCAQ\n-----END EC PRIVATE KEY-----\nb":                                  "REMOVED\nb",
		"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----": "-----BEGIN CERTIFICATE-----\nMII\n" +
			"-----END CERTIFICATE-----",
		"said " + jwt + ", and":                    "said REMOVED, and",
		"Authorization: Bearer abcdefghijkl":       "Authorization: Bearer REMOVED",
		"token abcdef.0123456789abcdef is used":    "token abcdef.REMOVED is used",
		"https://ann:hunter2@registry.example/x":   "https://ann:REMOVED@registry.example/x",
		"https://registry.example:5000/x@sha256:0": "https://registry.example:5000/x@sha256:0",
		`{"password": "hunter22"}`:                 `{"password": REMOVED}`,
		"client-key-data: LS0tLS1CRUdJTg==":        "client-key-data: REMOVED",
		"bootstrap-token-file: /etc/weir/token":    "bootstrap-token-file: /etc/weir/token",
		"weir-manager has written 12 tokens":       "weir-manager has written 12 tokens",
	} {
		if got := string(redact([]byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// FuzzRedact: whatever stands around it, no private key, web token or bootstrap token comes through.
func FuzzRedact(f *testing.F) {
	f.Add("a ", " b")
	f.Add("{\"x\":\"", "\"}")
	f.Fuzz(func(t *testing.T, before, after string) {
		const key = "MHcCAQEEIPlantedPlantedPlanted"
		got := string(
			redact([]byte(before + "\n-----BEGIN PRIVATE KEY-----\n" + key + "\n-----END PRIVATE KEY-----\n" + after)))
		if strings.Contains(got, key) && !strings.Contains(before+after, key) {
			t.Errorf("%q", got)
		}
	})
}

// files are what an archive has.
func files(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(h.Name, "d/")] = string(text)
	}
}

// TestCut: a secret that is cut off, because its text is too long or begins within it, does not come through either.
func TestCut(t *testing.T) {
	const line, end = "cGxhbnRlZCBwbGFudGVkIHBsYW50ZWQ\n", "-----END EC PRIVATE KEY-----\n"
	key := "-----BEGIN EC PRIVATE KEY-----\n" + strings.Repeat(line, 100) + end
	token := `{"token": "` + strings.Repeat("p1antedp1anted.", 100) + "\"}\n"
	path := filepath.Join(t.TempDir(), "d.tar.gz")
	a, err := createArchive(path, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	after := strings.Repeat("x\n", maxFile/2-100)
	for name, text := range map[string]string{
		"key": key + after, "token": token + after, "log": strings.Repeat("host weir-hub[1]: "+line, 60) +
			"host weir-hub[1]: " + end + "and what follows\n",
	} {
		if err := a.add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.close(nil); err != nil {
		t.Fatal(err)
	}
	all := files(t, path)
	for name, text := range all {
		if strings.Contains(text, "cGxhbnRlZ") || strings.Contains(text, "p1anted") {
			t.Errorf("%s: %.200q", name, text)
		}
	}
	if len(all) != 3 || !strings.Contains(all["log"], "and what follows") {
		t.Errorf("%d files, the log is %q", len(all), all["log"])
	}
}

// TestBounds: a file keeps its end, the archive its bound, and what was left out is told.
func TestBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.tar.gz")
	a, err := createArchive(path, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	long := append(bytes.Repeat([]byte("x"), maxFile), "end"...)
	for i := range maxAll/maxFile + 2 {
		if err := a.add(fmt.Sprint(i), long); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.close(nil); err != nil {
		t.Fatal(err)
	}
	all, size := files(t, path), 0
	for _, text := range all {
		size += len(text)
	}
	if size > maxAll+maxFile || !strings.HasSuffix(all["0"], "end") ||
		!strings.HasPrefix(all["0"], "(the first 3 bytes are left out)\n") ||
		!strings.Contains(all["errors.txt"], "would have more than") {
		t.Errorf("%d bytes, %d files, errors %q", size, len(all), all["errors.txt"])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := createArchive(path, time.Unix(0, 0)); err == nil {
		t.Error("a file that is there is written anew")
	}
	broken, err := createArchive(filepath.Join(t.TempDir(), "d.tar.gz"), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.close(errors.New("no")); err == nil || !strings.Contains(err.Error(), "no") {
		t.Error(err)
	}
	if _, err := os.Stat(broken.file.Name()); err == nil {
		t.Error("half an archive is left behind")
	}
}
