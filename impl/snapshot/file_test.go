package snapshot

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/testkit"
)

const fileName = slices1 + ".snapshot"

// small is a world with a file that has everything: objects, changes of the ring, appended changes, a batch.
func small(t testing.TB) (w *world, disk *testkit.Flash) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 1))
	w, disk = newWorld(t, rnd, 1<<20), testkit.NewFlash(rnd)
	k := w.keeper(w.relay, disk)
	w.list(3, false)
	w.put("o1", 3)
	w.put("o2", 3)
	k.step(t.Context(), false)
	w.put("new", 3)
	k.step(t.Context(), false)
	w.remove("o1")
	w.bookmark()
	k.step(t.Context(), false)
	w.list(3, false)
	k.step(t.Context(), false)
	w.put("o2", 7)
	k.step(t.Context(), true)
	if s := k.did.read(); s.Version != w.reach || s.Errors > 0 {
		t.Fatalf("%+v, reached is %d", s, w.reach)
	}
	return w, disk
}

// load restores a relay from bytes.
func (w *world) load(b []byte) (*relay.Relay, *content, error) {
	r := w.empty(1 << 20)
	c, err := decode(bytes.NewReader(b), int64(len(b)), r)
	if err == nil {
		err = c.relay.Finish(c.asOf)
	}
	return r, c, err
}

// TestEveryByte: a file that is cut at any byte, or of which any byte is another, is refused, or restores a state that
// the relay was in, and then the last one before the fault.
func TestEveryByte(t *testing.T) {
	w, disk := small(t)
	whole := disk.Files[fileName].Now
	r, c, err := w.load(whole)
	check(t, err)
	if c.torn != 0 || c.open || r.Status().Version != w.reach {
		t.Fatalf("%+v, %+v", c, r.Status())
	}
	base := int(c.base)
	refused, older := 0, 0
	try := func(what string, at int, b []byte) {
		r, c, err := w.load(b)
		switch {
		case err != nil:
			if at >= base {
				t.Fatalf("%s at %d of %d: refused, although the part written at once ends at %d: %v", what, at, len(whole), base,
					err)
			}
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrNewer) {
				t.Fatalf("%s at %d: %v", what, at, err)
			}
			if r.Status().Synced {
				t.Fatalf("%s at %d: refused, and the relay has something", what, at)
			}
			refused++
		case at < base:
			t.Fatalf("%s at %d of %d: not noticed", what, at, len(whole))
		default:
			if s := r.Status(); s.Version != w.reach {
				older++
			}
			if c.end.offset > int64(at) {
				t.Fatalf("%s at %d: a block up to %d was believed", what, at, c.end.offset)
			}
			if _, _, to := held(t, r); w.truth[r.Status().Version] != to {
				t.Fatalf("%s at %d: the state at %d was never reached", what, at, r.Status().Version)
			}
		}
	}
	for at := range whole {
		try("cut", at, whole[:at])
		for _, bit := range []byte{1, 0x80, 0xff} {
			b := bytes.Clone(whole)
			b[at] ^= bit
			try("flip", at, b)
		}
	}
	t.Logf("%d bytes, %d written at once: %d refused, %d restored an older state", len(whole), base, refused, older)
	if refused != 4*base || older == 0 {
		t.Error("not every fault was noticed")
	}
}

// TestSetAside: what cannot be used is kept and named, the relay starts empty, and the next file is written.
func TestSetAside(t *testing.T) {
	w, disk := small(t)
	good := disk.Files[fileName].Now
	newer := bytes.Clone(good)
	newer[len(magic)]++
	tests := map[string]struct {
		file []byte
		says string
	}{
		"damaged":   {good[:len(good)/3], "damaged"},
		"empty":     {nil, "damaged"},
		"newer":     {newer, "later version of Weir"},
		"something": {[]byte("kind: ConfigMap # and so on"), "no snapshot"},
		"foreign":   {nil, "of endpoints.v1.=Endpoints"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName)
			if name == "foreign" {
				test.file = foreign(t)
			}
			check(t, os.WriteFile(path, test.file, 0o600))
			var log bytes.Buffer
			r := w.empty(1 << 20)
			s, err := Open(Config{
				Dir: dir, Relays: []*relay.Relay{r}, Clock: w.clock, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			check(t, err)
			defer s.Close()
			if r.Status().Synced {
				t.Error("it was used")
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), fileName+".bad") ||
				!strings.Contains(log.String(), test.says) {
				t.Errorf("%d lines, want one that has %q: %s", n, test.says, &log)
			}
			kept, err := os.ReadFile(path + ".bad")
			if err != nil || !bytes.Equal(kept, test.file) {
				t.Errorf("the file was not kept: %v", err)
			}
			if st := s.Status()[slices1]; st.Errors != 1 {
				t.Errorf("%+v", st)
			}
			check(t, r.Replace(7, nil))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			check(t, s.Run(ctx))
			again := w.empty(1 << 20)
			s, err = Open(Config{Dir: dir, Relays: []*relay.Relay{again}, Clock: w.clock, Logger: w.logger})
			check(t, err)
			defer s.Close()
			if again.Status().Version != 7 {
				t.Errorf("%+v", again.Status())
			}
		})
	}
}

func foreign(t *testing.T) []byte {
	t.Helper()
	res, err := relay.ParseResource("endpoints.v1.")
	check(t, err)
	var b bytes.Buffer
	e := newEncoder(&b, position{})
	e.start()
	e.head(res, relay.History{}, 7, time.Unix(1, 0), 0)
	e.whole(0)
	check(t, e.end())
	return b.Bytes()
}

// TestInUse: two processes never share a folder.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	check(t, err)
	var inUse *disk.InUseError
	if _, err := Open(Config{Dir: dir}); !errors.As(err, &inUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second one: %v", err)
	}
	s.Close()
	s, err = Open(Config{Dir: dir})
	check(t, err)
	s.Close()
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{}, {Dir: "x", Every: time.Microsecond}, {Dir: "x", Every: time.Minute, Idle: time.Second},
	} {
		if _, err := Open(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestNoSecrets: a relay, and so a snapshot, never has Secrets.
func TestNoSecrets(t *testing.T) {
	for _, name := range []string{"secrets.v1.", "secrets.v1", "secrets.v1.=Secret"} {
		if r, err := relay.ParseResource(name); err == nil {
			t.Errorf("%s is a resource of a pool: %v", name, r)
		}
	}
}
