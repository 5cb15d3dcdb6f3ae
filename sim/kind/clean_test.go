package kind

import (
	"os"
	"path/filepath"
	"testing"
)

func TestALockLivesAsLongAsItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		when string
		end  func() error
		want bool
	}{
		{"held", func() error { return nil }, true},
		{"closed", lock.Close, false},
		{"removed", func() error { return os.Remove(path) }, false},
	} {
		if err := x.end(); err != nil {
			t.Fatal(err)
		}
		if got, err := locked(path); err != nil || got != x.want {
			t.Errorf("%s: locked %v, %v; want %v", x.when, got, err, x.want)
		}
	}
}
