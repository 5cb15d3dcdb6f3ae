package disk

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func checkKey(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSeal: what is sealed can be opened with its key at its place only, and another key says that it is another one.
func TestSeal(t *testing.T) {
	k, err := NewKey(bytes.Repeat([]byte("k"), Size))
	checkKey(t, err)
	same, err := NewKey([]byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), Size)) + "\n"))
	checkKey(t, err)
	other, err := NewKey(bytes.Repeat([]byte("o"), Size))
	checkKey(t, err)
	b := k.Seal([]byte("raw"), []byte("here"))
	if raw, err := same.Open(b, []byte("here")); err != nil || string(raw) != "raw" {
		t.Errorf("%q, %v", raw, err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"another place": func() ([]byte, error) { return k.Open(b, []byte("there")) },
		"a part of it":  func() ([]byte, error) { return k.Open(b[:10], []byte("here")) },
		"another bit": func() ([]byte, error) {
			return k.Open(append(b[:len(b)-1:len(b)-1], b[len(b)-1]^1), []byte("here"))
		},
		"with no key":     func() ([]byte, error) { return (*Key)(nil).Open(b, []byte("here")) },
		"with another":    func() ([]byte, error) { return other.Open(b, []byte("here")) },
		"nothing at all ": func() ([]byte, error) { return k.Open(nil, nil) },
	} {
		want := ErrBroken
		if strings.HasPrefix(name, "with") || strings.HasPrefix(name, "nothing") {
			want = ErrNoKey
		}
		if raw, err := open(); raw != nil || !errors.Is(err, want) {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 33), strings.Repeat("A", 43) + "!"} {
		if _, err := NewKey([]byte(bad)); err == nil || !strings.Contains(err.Error(), "32 random bytes") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestSource: the key that is named, the credential, the one that is made, in this order; never one in the folder of
// the data, nor one that others can read.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	checkKey(t, os.MkdirAll(in("data", "store"), 0o700))
	checkKey(t, os.MkdirAll(in("credentials"), 0o700))
	checkKey(t, os.Symlink(in("data"), in("link")))
	write := func(mode os.FileMode, path string, fill string) string {
		checkKey(t, os.WriteFile(path, bytes.Repeat([]byte(fill), Size), mode))
		checkKey(t, os.Chmod(path, mode))
		return path
	}
	good, open := write(0o600, in("good"), "g"), write(0o640, in("open"), "o")
	inside := write(0o600, in("data", "key"), "i")
	write(0o440, in("credentials", Credential), "c") // as systemd makes it for a user: by an ACL
	checkKey(t, os.WriteFile(in("short"), []byte("short"), 0o600))
	for name, test := range map[string]struct {
		KeySource
		path, says string
	}{
		"none":   {KeySource{}, "", ""},
		"a file": {KeySource{File: good, Credentials: in("credentials"), Generated: in("new1")}, good, ""},
		"the credential": {
			KeySource{Credentials: in("credentials"), Generated: in("new2")}, in("credentials", Credential), "",
		},
		"one that is made": {
			KeySource{Credentials: in("data"), Generated: in("etc", "weir", "new3")}, in("etc", "weir", "new3"), "",
		},
		"a file that is not there":    {KeySource{File: in("none"), Generated: in("new4")}, "", "no such file"},
		"a file that others can read": {KeySource{File: open}, "", "chmod 600"},
		"in the folder":               {KeySource{File: inside}, "", "a copy of that has both"},
		"in the folder, by a link":    {KeySource{File: in("link", "key")}, "", "a copy of that has both"},
		"made in the folder": {
			KeySource{Generated: in("data", "store", "x", "key")}, "", "a copy of that has both",
		},
		"made in the folder, by links": {KeySource{Generated: in("link", "x", "key")}, "", "a copy of that has both"},
		"too short":                    {KeySource{File: in("short")}, "", "32 random bytes"},
		"no file":                      {KeySource{File: in("credentials")}, "", "it is no file"},
	} {
		test.DataDir = in("data")
		k, path, err := test.Key()
		switch {
		case test.says != "":
			if bad := (*KeyFileError)(nil); err == nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want %q", name, err, test.says)
			}
		case err != nil || path != test.path || (k == nil) != (path == ""):
			t.Errorf("%s: %q, %v, want %q", name, path, err, test.path)
		}
	}
	for _, unmade := range []string{"new1", "new2", "new4", "data/store/x", "data/x"} {
		if there(in(unmade)) {
			t.Errorf("%s was made", unmade)
		}
	}
}

// TestGenerated: it is made once, also by many at once, for its owner alone.
func TestGenerated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir", "store.key")
	keys := make([]*Key, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], _, err = (KeySource{Generated: path}).Key(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		if k == nil || k.name != keys[0].name {
			t.Error("another key")
		}
	}
	info, err := os.Stat(path)
	checkKey(t, err)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	checkKey(t, err)
	if info.Mode().Perm() != 0o600 || info.Size() != Size || len(files) != 1 {
		t.Errorf("%v, %d bytes, files %v", info.Mode(), info.Size(), files)
	}
}
