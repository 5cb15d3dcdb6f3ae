package process

import (
	"net"
	"path/filepath"
	"testing"
)

// TestTell: what is told arrives, at a socket of a path and at an abstract one, and without one nothing fails.
func TestTell(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if Wanted() || Tell(Ready) != nil {
		t.Error("without a socket it is an error")
	}
	path := filepath.Join(t.TempDir(), "s")
	for _, address := range []string{path, "@weir-sdnotify-" + filepath.Base(filepath.Dir(filepath.Dir(path)))} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_SOCKET", address)
		if err := Tell(Ready); err != nil || !Wanted() {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, err := conn.Read(b)
		if err != nil || string(b[:n]) != "READY=1" {
			t.Errorf("%q, %v", b[:n], err)
		}
		conn.Close()
		if address == path {
			continue
		}
		if err := Tell(Stopping); err == nil {
			t.Error("nobody listens, and it is no error")
		}
	}
}
