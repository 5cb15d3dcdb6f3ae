package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadFile: a file is read to its bound, and one that is longer is an error that names it and the bound, however
// long it is.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.pem")
	if _, err := ReadFile(path, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of none: %v", err)
	}
	for n, fits := range map[int]bool{0: true, 9: true, 10: true, 11: false, 1 << 20: false} {
		check(t, os.WriteFile(path, bytes.Repeat([]byte("x"), n), 0o600))
		text, err := ReadFile(path, 10)
		switch {
		case fits && (err != nil || len(text) != n):
			t.Errorf("of %d bytes: %d, %v", n, len(text), err)
		case !fits &&
			(err == nil || text != nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "10 bytes")):
			t.Errorf("of %d bytes: %d, %v", n, len(text), err)
		}
	}
	check(t, os.Truncate(path, 1<<40)) // it would not fit in memory
	if _, err := ReadFile(path, 10); err == nil {
		t.Error("of a terabyte: no error")
	}
}
