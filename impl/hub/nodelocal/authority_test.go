package nodelocal

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/pki"
)

var authorityStart = time.Date(2026, time.November, 23, 0, 0, 0, 0, time.UTC)

// authorityBed is a node's folder and clock.
type authorityBed struct {
	t     testing.TB
	clock *testingclock.FakeClock
	hosts []string
	c     AuthorityConfig
	log   bytes.Buffer
}

func newBed(t testing.TB, now time.Time) *authorityBed {
	t.Helper()
	b := &authorityBed{t: t, clock: testingclock.NewFakeClock(now), hosts: []string{"10.0.0.7", "kubernetes.default.svc"}}
	dir := t.TempDir()
	b.c = AuthorityConfig{
		Node: "edge-1", Dir: filepath.Join(dir, "pki"), File: filepath.Join(dir, "etc", "node-authority.crt"),
		Hosts: func() []string { return b.hosts }, Clock: b.clock,
		Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
	}
	return b
}

func (b *authorityBed) open() *Authority {
	b.t.Helper()
	a, err := OpenAuthority(b.c)
	check(b.t, err)
	return a
}

// verifies reports whether who read the file at some time takes the hub's certificate now.
func (b *authorityBed) verifies(a *Authority, roots []byte, host string) error {
	b.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	_, err := a.Get().Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: b.clock.Now(), DNSName: host})
	return err
}

func (b *authorityBed) file() []byte {
	b.t.Helper()
	text, err := os.ReadFile(b.c.File)
	check(b.t, err)
	return text
}

// TestOpen: a node's first start makes all that is needed, and a second one goes on with it. Keys are the hub's alone.
func TestOpen(t *testing.T) {
	b := newBed(t, authorityStart)
	a := b.open()
	certs, err := pki.ParseCertificates(b.file())
	check(t, err)
	if c := certs[0]; len(certs) != 1 || c.Subject.CommonName != "weir:node-authority:edge-1" || !c.IsCA ||
		!c.MaxPathLenZero || c.NotAfter.Sub(authorityStart) < 9*year {
		t.Errorf("%d authorities, the first %v until %v", len(certs), c.Subject, c.NotAfter)
	}
	for _, host := range b.hosts {
		check(t, b.verifies(a, b.file(), host))
	}
	if b.verifies(a, b.file(), "10.0.0.8") == nil {
		t.Error("the certificate is for an address that nobody named")
	}
	for path, mode := range map[string]os.FileMode{
		a.keys()[0]: 0o600, a.keys()[1]: 0o600, filepath.Join(b.c.Dir, kubeletFile): 0o600, b.c.Dir: 0o700, b.c.File: 0o644,
	} {
		info, err := os.Stat(path)
		check(t, err)
		if info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, want %v", path, info.Mode().Perm(), mode)
		}
	}
	text, err := read(filepath.Join(b.c.Dir, kubeletFile))
	check(t, err)
	err = pki.Must(pki.Kubelet).CheckPair(split(text), pki.Subject{Node: "edge-1"}, certs, authorityStart)
	if err != nil {
		t.Errorf("the kubelet's credential: %v", err)
	}
	before, first := b.file(), a.Get()
	again := b.open()
	if !bytes.Equal(b.file(), before) || !bytes.Equal(again.Restored(), before) {
		t.Error("a second start has another authority")
	}
	if bytes.Equal(again.Get().Certificate[0], first.Certificate[0]) {
		t.Error("the key of the hub's certificate is kept somewhere")
	}
	if now, err := read(filepath.Join(b.c.Dir, kubeletFile)); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the kubelet's credential was replaced without need: %v", err)
	}
}

// TestRenewal: leaves are renewed at 70 to 80 % of their life, and an address that was added is in the certificate.
func TestRenewal(t *testing.T) {
	b := newBed(t, authorityStart)
	a := b.open()
	first := a.Get().Leaf
	kubelet, err := os.ReadFile(filepath.Join(b.c.Dir, kubeletFile))
	check(t, err)
	b.clock.SetTime(authorityStart.Add(leafLife * 69 / 100))
	a.Look()
	if a.Get().Leaf != first {
		t.Error("renewed before 70 % of its life")
	}
	b.clock.SetTime(authorityStart.Add(leafLife * 81 / 100))
	a.Look()
	if a.Get().Leaf == first {
		t.Error("not renewed at 80 % of its life")
	}
	if now, _ := os.ReadFile(filepath.Join(b.c.Dir, kubeletFile)); bytes.Equal(now, kubelet) {
		t.Error("the kubelet's credential is not renewed")
	}
	b.hosts = append(slices.Clone(b.hosts), "10.0.0.9")
	a.Look()
	check(t, b.verifies(a, b.file(), "10.0.0.9"))
}

// TestSuccessor: over thirty years, whoever read the file a year ago takes the hub's certificate, and what has ended is
// trusted no more. It is the same with a hub that was restarted each time.
func TestSuccessor(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newBed(t, authorityStart)
		a := b.open()
		told, generations := 0, map[string]bool{}
		a.Follow(func([]byte) { told++ })
		read := [][]byte{b.file()}
		const month = year / 12
		for m := range 12 * 30 {
			b.clock.SetTime(authorityStart.Add(time.Duration(m+1) * month))
			if restart {
				a = b.open()
			}
			a.Look()
			read = append(read, b.file())
			if err := b.verifies(a, read[max(0, len(read)-12)], "10.0.0.7"); err != nil {
				t.Fatalf("month %d, restarts %v: %v", m, restart, err)
			}
			certs, err := pki.ParseCertificates(b.file())
			check(t, err)
			for _, c := range certs {
				generations[c.SerialNumber.String()] = true
				if !b.clock.Now().Before(c.NotAfter) {
					t.Fatalf("month %d: an authority that has ended is trusted", m)
				}
			}
			keys, err := os.ReadFile(filepath.Join(b.c.Dir, keysFile))
			check(t, err)
			if n := bytes.Count(keys, []byte("PRIVATE KEY-----")) / 2; len(certs) > 2 || n > 2 {
				t.Fatalf("month %d: %d authorities, %d keys", m, len(certs), n)
			}
		}
		if len(generations) != 5 || !restart && told == 0 {
			t.Errorf("%d authorities in 30 years, told %d times", len(generations), told)
		}
	}
}

// TestClock: a machine that starts in 1970 has a certificate that is valid there, and the same authority when it learns
// the time.
func TestClock(t *testing.T) {
	b := newBed(t, time.Unix(60, 0))
	a := b.open()
	before := b.file()
	check(t, b.verifies(a, before, "10.0.0.7"))
	for _, now := range []time.Time{authorityStart, time.Unix(120, 0), authorityStart.Add(5 * year)} {
		b.clock.SetTime(now)
		if err := b.verifies(a, before, "10.0.0.7"); err != nil {
			t.Errorf("in %v: %v", now, err)
		}
	}
	if !bytes.Equal(b.file(), before) {
		t.Error("the clock made another authority")
	}
	b.clock.SetTime(authorityStart.Add(40 * year))
	if err := b.verifies(a, before, "10.0.0.7"); err == nil {
		t.Error("an authority counts after its end")
	}
	check(t, b.verifies(a, b.file(), "10.0.0.7"))
}

// TestCopy: a hub that has lost its folder, or whose keys there are broken, or that has lost the copy, goes on as the
// same authority, and both places have it again.
func TestCopy(t *testing.T) {
	b := newBed(t, authorityStart)
	a := b.open()
	before := b.file()
	good, err := os.ReadFile(a.keys()[0])
	check(t, err)
	for name, hurt := range map[string]func() error{
		"no folder":  func() error { return os.RemoveAll(b.c.Dir) },
		"no copy":    func() error { return os.Remove(a.keys()[1]) },
		"bad keys":   func() error { return os.WriteFile(a.keys()[0], []byte("garbage"), 0o600) },
		"other keys": func() error { return os.WriteFile(a.keys()[1], []byte("garbage"), 0o600) },
	} {
		check(t, hurt())
		check(t, b.verifies(b.open(), before, "10.0.0.7"))
		for _, path := range a.keys() {
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
				t.Errorf("%s: %s is another: %v", name, path, err)
			}
		}
		if !bytes.Equal(b.file(), before) {
			t.Errorf("%s: the kubelet is shown another authority", name)
		}
	}
}

// TestUnusable: what is broken, or of another node, is put aside, and another authority is made. A folder that cannot
// be written is an error.
func TestUnusable(t *testing.T) {
	whole := newBed(t, authorityStart)
	whole.open()
	good, err := os.ReadFile(filepath.Join(whole.c.Dir, keysFile))
	check(t, err)
	key, cert := pem.Decode(good)
	other := newBed(t, authorityStart)
	other.c.Node = "edge-2"
	other.open()
	another, err := os.ReadFile(filepath.Join(other.c.Dir, keysFile))
	check(t, err)
	mixed, _ := pem.Decode(another)
	for name, text := range map[string][]byte{
		"nothing": {}, "half": good[:len(good)/2], "a certificate without its key": cert, "garbage": []byte("garbage"),
		"another node's": another,
		"another's key":  append(pem.EncodeToMemory(mixed), cert...), "two keys": append(pem.EncodeToMemory(key), good...),
		"too much": bytes.Repeat(good, 200),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, authorityStart)
			a := b.open()
			path := a.keys()[0]
			check(t, os.WriteFile(path, text, 0o600))
			check(t, os.WriteFile(a.keys()[1], text, 0o600))
			a = b.open()
			check(t, b.verifies(a, b.file(), "10.0.0.7"))
			if now, err := os.ReadFile(path); err != nil || bytes.Equal(now, good) {
				t.Errorf("no other authority was made: %v", err)
			}
			if name == "a certificate without its key" { // it may sign no more, and is trusted still
				return
			}
			if aside, err := os.ReadFile(path + ".unusable"); err != nil || !bytes.Equal(aside, text) {
				t.Errorf("what was there is not put aside: %v", err)
			}
			if !bytes.Contains(b.log.Bytes(), []byte("restart the kubelet")) {
				t.Errorf("the log says %s", b.log.String())
			}
		})
	}
	b := newBed(t, authorityStart)
	b.open()
	kept := b.file()
	check(t, os.Remove(filepath.Join(b.c.Dir, kubeletFile)))
	check(t, os.Mkdir(filepath.Join(b.c.Dir, kubeletFile), 0o700)) // as on a disk that is full
	check(t, os.Mkdir(filepath.Join(b.c.Dir, keysFile+".tmp"), 0o700))
	check(t, os.WriteFile(filepath.Join(b.c.Dir, keysFile+".tmp", "x"), nil, 0o600))
	b.clock.SetTime(authorityStart.Add(8 * year)) // a successor is due
	if a := b.open(); b.verifies(a, kept, "10.0.0.7") != nil || !bytes.Equal(b.file(), kept) {
		t.Error("a hub that cannot write does not go on with the authority that it has")
	}
	if !bytes.Contains(b.log.Bytes(), []byte("cannot be renewed")) {
		t.Errorf("the log says %s", b.log.String())
	}
	b = newBed(t, authorityStart)
	b.c.File = filepath.Join(b.c.Dir, keysFile, "x")
	if _, err := OpenAuthority(b.c); err == nil {
		t.Error("a file that cannot be written is no error")
	}
}
