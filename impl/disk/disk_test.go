package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLinks: a link that somebody else has put in place of a file leads nowhere: what it points to is neither written
// nor read.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	victim := in("victim")
	check(t, os.WriteFile(victim, []byte("precious"), 0o600))
	check(t, os.Symlink(victim, in("file.tmp")))
	check(t, os.Symlink(victim, in("file")))
	check(t, WriteFile(in("file"), []byte("content")))
	check(t, os.Symlink(victim, in("created")))
	f, err := Folder(dir).Create("created")
	check(t, err)
	_, err = f.Write([]byte("content"))
	check(t, errors.Join(err, f.Close()))
	check(t, os.Symlink(victim, in("opened")))
	if f, err := Folder(dir).Open("opened"); err == nil {
		f.Close()
		t.Error("a link was opened")
	}
	check(t, os.Mkdir(in("folder"), 0o700))
	check(t, os.Symlink(in("locked"), in("folder/lock")))
	if l, err := Take(in("folder")); err == nil {
		_ = l.Release()
		t.Error("a link was taken for the lock")
	}
	for name, want := range map[string]string{"victim": "precious", "file": "content", "created": "content"} {
		if got, err := os.ReadFile(in(name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if info, err := os.Lstat(in("file")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := os.Lstat(in("locked")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made behind a link: %v", err)
	}
}

// TestRelease: a folder is free once it is released, though a program that is being started has a copy of what is open
// here.
func TestRelease(t *testing.T) {
	dir := t.TempDir()
	l, err := Take(dir)
	check(t, err)
	var used *InUseError
	if _, err := Take(dir); !errors.As(err, &used) {
		t.Fatalf("it is taken twice: %v", err)
	}
	copied, err := syscall.Dup(int(l.file.Fd()))
	check(t, err)
	defer syscall.Close(copied)
	check(t, l.Release())
	l, err = Take(dir)
	check(t, err)
	check(t, l.Release())
}

// TestWriteNew: it replaces nothing, and leaves nothing but the file.
func TestWriteNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	check(t, WriteNew(path, []byte("first")))
	if err := WriteNew(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestPrivate: only what its owner alone can read is private.
func TestPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	check(t, os.WriteFile(path, nil, 0o600))
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o640: "0640", 0o604: "0604", 0o620: "0620", 0o666: "0666",
	} {
		check(t, os.Chmod(path, mode))
		if err := Private(path); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", mode, err)
		}
	}
}
