package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-edge/weir/impl/store/table"
)

// TestAnotherVersion: what another version of Weir has kept is put aside, is there again when that version is, and what
// was kept by this one counts again after it.
func TestAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, table.FileName)
	becomes := func(from, to string) { // the file is of another version, or of this one
		t.Helper()
		text, err := os.ReadFile(path)
		check(t, err)
		if !bytes.Contains(text, []byte(from)) {
			t.Fatalf("the file does not say %s", from)
		}
		check(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o600))
	}
	s := open(t, Config{Dir: dir})
	putStatus(t, s)
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	s.Close()
	newer, err := os.ReadFile(path)
	check(t, err)
	becomes("weirstore2", "weirstore3")

	s = open(t, s.Config) // an upgrade is undone
	if s.Stats().SetAside != 1 || s.Queue().Len() != 1 {
		t.Errorf("%+v, %d writes wait", s.Stats(), s.Queue().Len())
	}
	list(t, s, kubelet(), podKind, 20, pod(t, "a/y", 15))
	s.Close()
	kept, err := os.ReadFile(path + ".weirstore3")
	check(t, err)
	if !bytes.Equal(kept, bytes.ReplaceAll(newer, []byte("weirstore2"), []byte("weirstore3"))) {
		t.Error("what the other version has kept is not what it was")
	}

	check(t, os.Rename(path, path+".weirstore2")) // the upgrade comes again: the other version puts this one's aside
	check(t, os.Rename(path+".weirstore3", path))
	s = open(t, s.Config)
	defer s.Close()
	expect(t, "what this version has kept", read(t, s, kubelet()), "20: a/y@15")
	if _, err := os.Stat(path + ".weirstore3"); err != nil {
		t.Error(err)
	}
}
