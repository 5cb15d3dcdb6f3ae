package gates

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/pki"
)

const gateServer = "https://gate.example:10273"

// authority is one that a gate may have.
func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewPoolAuthority("gate", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func put(t *testing.T, path string, text ...[]byte) {
	t.Helper()
	var all []byte
	for _, b := range text {
		all = append(all, b...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

func gateOf(path string, clock *clocktesting.FakeClock) (*Gate, error) {
	return New(Config{Server: gateServer, CAFile: path, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
}

// TestValidate: an address is one of https, and comes with a file.
func TestValidate(t *testing.T) {
	for c, field := range map[Config]string{
		{}: "", {Server: gateServer, CAFile: "ca.crt"}: "",
		{Server: gateServer}: "--gate-ca-file", {CAFile: "ca.crt"}: "--gate",
		{Server: "gate.example:10273", CAFile: "ca.crt"}:  "--gate",
		{Server: "http://gate.example", CAFile: "ca.crt"}: "--gate",
		{Server: gateServer + "/api", CAFile: "ca.crt"}:   "--gate",
		{Server: gateServer, CAFile: "ca.crt", Ways: 9}:   "",
		{Server: gateServer, CAFile: "ca.crt", Ways: 10}:  "--gate-ways",
		{Server: gateServer, CAFile: "ca.crt", Ways: -1}:  "--gate-ways",
		{Ways: 1}: "--gate",
	} {
		var usage *cli.UsageError
		if err := c.Validate(); (err == nil) != (field == "") ||
			err != nil && (!errors.As(err, &usage) || usage.Field != field) {
			t.Errorf("%+v: %v, want %q", c, err, field)
		}
	}
}

// TestFile: pools are told certificates. Whatever else the file has, a key above all, is refused, as is a file that
// is too long or not there.
func TestFile(t *testing.T) {
	a, path := authority(t), filepath.Join(t.TempDir(), "ca.crt")
	key, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, a.CertPEM())
	b, err := gateOf(path, nil)
	if want := (directory.Gate{Server: gateServer, Authorities: string(a.CertPEM())}); err != nil || b.Now() != want {
		t.Fatalf("%+v, %v", b.Now(), err)
	}
	for name, text := range map[string][]byte{
		"a key beside":      append(a.CertPEM(), key...),
		"nothing":           nil,
		"no PEM":            []byte("authority"),
		"many certificates": []byte(strings.Repeat(string(a.CertPEM()), directory.MaxAuthorities/len(a.CertPEM())+1)),
		"a long file":       make([]byte, pki.MaxPEM+1),
	} {
		put(t, path, text)
		var usage *cli.UsageError
		if _, err := gateOf(path, nil); !errors.As(err, &usage) || usage.Field != "--gate-ca-file" || usage.Value != path ||
			strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := gateOf(path, nil); cli.ExitCode(err) != 2 {
		t.Errorf("no file: %v", err)
	}
	if b, err := New(Config{}); err != nil || b.Now() != (directory.Gate{}) {
		t.Errorf("no gate: %v, %v", b, err)
	}
}

// TestFollow: other authorities are told within a look. What is spoilt is not, and what was told before stays.
func TestFollow(t *testing.T) {
	first, second, path := authority(t), authority(t), filepath.Join(t.TempDir(), "ca.crt")
	put(t, path, first.CertPEM())
	clock := clocktesting.NewFakeClock(time.Now())
	b, err := gateOf(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 9)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Follow(t.Context(), func() { told <- b.Now().Authorities })
	}()
	t.Cleanup(func() { <-done })
	look := func() {
		t.Helper()
		for range 2 { // the first ends a pause, the second begins when a look is over
			for !clock.HasWaiters() {
				time.Sleep(time.Millisecond)
			}
			clock.Step(looks)
		}
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
	}
	look()
	put(t, path, []byte("spoilt"))
	look()
	if b.Now().Authorities != string(first.CertPEM()) || len(told) > 0 {
		t.Errorf("told %d times: %s", len(told), b.Now().Authorities)
	}
	put(t, path, first.CertPEM(), second.CertPEM())
	look()
	if is := <-told; is != string(first.CertPEM())+string(second.CertPEM()) || len(told) > 0 {
		t.Errorf("told of %s, and %d times more", is, len(told))
	}
}
