package credential

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

var subject = pki.Subject{Pool: "harbour", Node: "edge-1"}

const day = 24 * time.Hour

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// bed is a node with one Keeper, in a time of its own.
type bed struct {
	*Keeper
	t         *testing.T
	cloud     *cloud
	authority *pki.Authority
	log       *bytes.Buffer // while nothing runs
	changed   int
}

func newBed(t *testing.T, dir string, change func(*KeeperConfig)) *bed {
	t.Helper()
	b := &bed{t: t, log: &bytes.Buffer{}, authority: must(pki.NewPoolAuthority("harbour", time.Now()))}
	b.cloud = newCloud(signer(b.authority, 90*day))
	b.open(dir, change)
	return b
}

// open begins as after a restart.
func (b *bed) open(dir string, change func(*KeeperConfig)) {
	b.t.Helper()
	c := KeeperConfig{
		Identity: pki.Must(pki.Hub), Subject: subject, Dir: dir,
		Trusted: func() []*x509.Certificate { return []*x509.Certificate{b.authority.Cert()} },
		Clock:   clock.RealClock{}, Metrics: NewKeeperMetrics(), Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	if change != nil {
		change(&c)
	}
	k, err := OpenKeeper(c)
	if err != nil {
		b.t.Fatal(err)
	}
	k.Follow(func() { b.changed++ })
	b.Keeper = k
}

// run lets a Keeper run for a time.
func (b *bed) run(d time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Run(ctx, b.cloud)
	}()
	time.Sleep(d)
	synctest.Wait()
	cancel()
	<-done
}

// untilDue lets it run until its certificate is due, and a little longer.
func (b *bed) untilDue(longer time.Duration) { b.run(time.Until(b.Status().Due) + longer) }

func (b *bed) serial() string {
	if c := b.Get(); c != nil {
		return c.Leaf.SerialNumber.String()
	}
	return ""
}

func (b *bed) failed(reason string) float64 {
	return testutil.ToFloat64(b.Metrics.failures.WithLabelValues("hub", reason))
}

func (b *bed) renewals() float64 {
	return testutil.ToFloat64(b.Metrics.renewals.WithLabelValues("hub"))
}

// said counts lines of the log with a text.
func (b *bed) said(text string) int {
	n := 0
	for line := range strings.Lines(b.log.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestJoin: a node that holds nothing gets a certificate of its own key, and keeps both so that nobody else can read
// them.
func TestJoin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, dir, nil)
		if b.Get() != nil {
			t.Fatal("it holds a certificate")
		}
		b.run(5 * time.Second)
		h := b.held.Load()
		if h == nil {
			t.Fatalf("no certificate: %s", b.log)
		}
		if err := b.Identity.CheckPair(h.pair, subject, []*x509.Certificate{b.authority.Cert()}, time.Now()); err != nil {
			t.Error(err)
		}
		if strings.Contains(b.cloud.sent.String(), "PRIVATE") || bytes.Contains(b.cloud.sent.Bytes(), h.pair.KeyPEM) {
			t.Error("the key has left the node")
		}
		if b.changed != 1 || b.renewals() != 1 || len(b.cloud.names) != 1 {
			t.Errorf("%d changes, %v renewals, requests %v", b.changed, b.renewals(), b.cloud.names)
		}
		files := must(os.ReadDir(dir))
		if len(files) != 1 || files[0].Name() != "hub.pem" || must(files[0].Info()).Mode() != 0o600 ||
			must(os.Stat(dir)).Mode().Perm() != 0o700 {
			t.Errorf("files %v", files)
		}
		serial := b.serial()
		b.open(dir, nil)
		if b.serial() != serial {
			t.Error("a restart has another certificate")
		}
		b.run(time.Hour)
		if len(b.cloud.names) != 1 {
			t.Errorf("a restart asks again: %v", b.cloud.names)
		}
	})
}

// TestRenewal: at 70 to 80 % of a life there is another key and certificate. Each end is told.
func TestRenewal(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, dir, nil)
		b.run(time.Minute)
		first := b.serial()
		if s := b.Status(); !s.End.Equal(b.Get().Leaf.NotAfter) || s.Due.Before(time.Now().Add(62*day)) ||
			s.Due.After(time.Now().Add(73*day)) || s.LastError != "" {
			t.Errorf("status %+v", s)
		}
		b.run(62 * day)
		if b.serial() != first || len(b.cloud.names) != 1 {
			t.Fatal("renewed too early")
		}
		b.run(11 * day)
		if b.serial() == first || b.changed != 2 || len(b.cloud.names) != 2 || len(b.cloud.keys) != 2 {
			t.Errorf("not renewed: %d changes, requests %v, %d keys", b.changed, b.cloud.names, len(b.cloud.keys))
		}
		b.run(140 * day)
		if n := len(b.cloud.names); n != 4 {
			t.Errorf("%d requests in 213 days", n)
		}
	})
}

// setClock is a clock that somebody sets. Timers do not know of that.
type setClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *setClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

// TestClockIsSet: a certificate is renewed soon after the clock was set past when it is due, as on a machine that
// started in 1970 and hears the cloud.
func TestClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &setClock{}
		b := newBed(t, "", func(s *KeeperConfig) { s.Clock = c })
		b.cloud.answer = signer(b.authority, time.Hour)
		b.run(time.Minute)
		b.cloud.answer = signer(b.authority, 90*day)
		go func() {
			time.Sleep(time.Minute)
			c.ahead.Store(int64(55 * time.Minute))
		}()
		b.run(5 * time.Minute)
		if b.renewals() != 2 {
			t.Errorf("%v renewals: %s", b.renewals(), b.log)
		}
	})
}

// TestManagerAway: the former certificate goes on while nobody answers, one request waits, and few questions are asked.
func TestManagerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, t.TempDir(), nil)
		b.run(time.Minute)
		first, answer := b.serial(), b.cloud.answer
		b.cloud.set(func() { b.cloud.answer = nil })
		b.untilDue(time.Hour)
		if b.serial() != first || len(b.cloud.names) != 2 || b.said("nobody has answered") != 1 ||
			b.failed(unreachable)+b.failed(refused) != 0 {
			t.Errorf("requests %v, log %s", b.cloud.names, b.log)
		}
		b.cloud.set(func() { b.cloud.reads = 0 })
		b.run(day)
		if b.cloud.reads > 24*60/3 {
			t.Errorf("%d questions in a day", b.cloud.reads)
		}
		time.Sleep(30 * day)
		b.run(time.Minute)
		if b.serial() != first {
			t.Error("the former one is not handed out to its end and beyond")
		}
		b.cloud.set(func() { b.cloud.answer = answer })
		b.run(10 * time.Minute)
		if b.serial() == first || b.Status().LastError != "" {
			t.Errorf("the manager is back, and: %+v", b.Status())
		}
	})
}

// TestCloudAway: nothing is lost while kube-apiserver is away, and it is asked as soon as it is back.
func TestCloudAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, t.TempDir(), nil)
		b.cloud.away = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.run(day + time.Second)
		}()
		time.Sleep(day)
		synctest.Wait()
		if n := b.failed(unreachable); n < 200 || n > 24*60/3 {
			t.Errorf("%v attempts in a day", n)
		}
		b.cloud.set(func() { b.cloud.away = false })
		b.Retry()
		<-done
		if b.Get() == nil {
			t.Error("it did not ask when the cloud was back")
		}
		if n := b.said("is not there yet"); n != 1 {
			t.Errorf("told %d times:\n%s", n, b.log)
		}
	})
}

// TestRefusedByPeers: a certificate ended while the cloud was away. A hub that is refused with it asks at once for
// another one, though nobody has told it that the cloud is back, and not more often than that makes sense. One that has
// not ended is not renewed by it.
func TestRefusedByPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, t.TempDir(), nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.run(91*day + time.Hour)
		}()
		time.Sleep(time.Hour)
		if b.Hurry() {
			t.Error("a certificate that counts is asked for again")
		}
		first := b.serial()
		b.cloud.set(func() { b.cloud.away = true })
		time.Sleep(91*day - time.Hour)
		synctest.Wait()
		b.cloud.set(func() { b.cloud.away = false })
		before, asked := b.failed(unreachable), 0
		for range 10 {
			if b.Hurry() {
				asked++
			}
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if b.serial() == first {
			t.Errorf("ten seconds after the cloud is back it has the former one; asked %d times, %v failures", asked,
				b.failed(unreachable)-before)
		}
		if asked < 1 || asked > 2 {
			t.Errorf("asked %d times", asked)
		}
		<-done
	})
}

// TestDenied: a denial is told once with its reason, another key is used later, and a cured cause brings a certificate.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, t.TempDir(), nil)
		grant := b.cloud.answer
		b.cloud.answer = denier(`pool: "" is not allowed: a Node with the label apps.openyurt.io/nodepool`)
		b.run(4 * time.Hour)
		if n := len(b.cloud.names); n < 10 || n > 4*60/3 || len(b.cloud.keys) != n || b.failed(denied) != float64(n) {
			t.Errorf("%d requests, %d keys, %v denied", n, len(b.cloud.keys), b.failed(denied))
		}
		if b.said("a Node with the label") != 1 || !strings.Contains(b.Status().LastError, "WeirDenied") {
			t.Errorf("status %+v, log %s", b.Status(), b.log)
		}
		b.cloud.answer = denier("node: another reason")
		b.run(10 * time.Minute)
		if b.said("another reason") != 1 {
			t.Errorf("log %s", b.log)
		}
		b.cloud.answer = grant
		b.run(10 * time.Minute)
		if b.Get() == nil {
			t.Error("the cause is cured, and there is no certificate")
		}
	})
}

// TestRefused: kube-apiserver takes no request, as by a token that is over: it is told once, and no key is wasted.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, t.TempDir(), nil)
		b.cloud.code = http.StatusUnauthorized
		b.run(time.Hour)
		if b.failed(refused) < 10 || b.said("Unauthorized") != 1 || b.Get() != nil || b.failed(denied) != 0 {
			t.Errorf("%v refused, log %s", b.failed(refused), b.log)
		}
	})
}

// TestOneRequest: an answer that was lost, and a restart in the middle, lead to the same request. A bootstrap token is
// valid once.
func TestOneRequest(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, dir, nil)
		answer := b.cloud.answer
		b.cloud.answer, b.cloud.lose = nil, true
		b.run(time.Minute)
		b.open(dir, nil)
		b.run(time.Minute)
		if len(b.cloud.names) != 1 || b.cloud.reads == 0 {
			t.Fatalf("requests %v", b.cloud.names)
		}
		b.cloud.answer = answer
		b.open(dir, nil)
		b.run(time.Minute)
		if b.Get() == nil || len(b.cloud.names) != 1 {
			t.Errorf("requests %v", b.cloud.names)
		}
		// One that was cleaned up is made again.
		b = newBed(t, t.TempDir(), nil)
		answer, b.cloud.answer = b.cloud.answer, nil
		b.run(time.Minute)
		clear(b.cloud.requests)
		b.cloud.answer = answer
		b.run(10 * time.Minute)
		if b.Get() == nil || len(b.cloud.keys) != 1 {
			t.Errorf("requests %v, %d keys", b.cloud.names, len(b.cloud.keys))
		}
	})
}

// TestHalf: whatever part of a file is there, half a certificate is refused with one line, and the former one goes on.
func TestHalf(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, dir, nil)
		b.run(time.Minute)
		former := b.serial()
		b.untilDue(time.Minute)
		current, path := b.serial(), filepath.Join(dir, "hub.pem")
		whole := must(os.ReadFile(path))
		for n := 0; n < len(whole)-1; n += 7 {
			if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			b.log.Reset()
			b.open(dir, nil)
			if b.serial() != former || b.said("cannot be used") != 1 || b.said("hub.pem") != 1 {
				t.Fatalf("of %d of %d bytes: %s, log %s", n, len(whole), b.serial(), b.log)
			}
		}
		other := must(
			b.authority.Issue(must(pki.Must(pki.Hub).Template(pki.Subject{Pool: "harbour", Node: "edge-2"}, time.Now(), day))))
		for what, text := range map[string][]byte{
			"another node's": append(bytes.Clone(other.KeyPEM), other.CertPEM...),
			"another key":    append(bytes.Clone(other.KeyPEM), b.held.Load().pair.CertPEM...),
			"too long":       append(bytes.Clone(whole), bytes.Repeat([]byte("\n"), maxKept)...),
		} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if b.open(dir, nil); b.serial() != former {
				t.Errorf("%s is used", what)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if b.open(dir, nil); b.serial() != current {
			t.Error("the whole file is not used")
		}
		for _, f := range []string{"hub.pem", "hub.before.pem", "hub.asked.pem"} {
			if err := os.WriteFile(filepath.Join(dir, f), []byte("-----BEGIN"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if b.open(dir, nil); b.Get() != nil {
			t.Error("rubbish is used")
		}
		if b.run(time.Minute); b.Get() == nil {
			t.Error("no new one is asked for")
		}
	})
}

// forgery is what is signed in place of what was asked for.
type forgery struct {
	subject    pki.Subject
	by         *pki.Authority
	key        any
	begin, end time.Time
}

// TestMismatch: what was signed and is not what was asked for is not used. The former one goes on, and another key is
// tried later.
func TestMismatch(t *testing.T) {
	for what, forge := range map[string]func(*forgery){
		"another key":       func(f *forgery) { f.key = must(pki.NewKey()).Public() },
		"another node":      func(f *forgery) { f.subject.Node = "edge-2" },
		"another pool":      func(f *forgery) { f.subject.Pool = "lighthouse" },
		"another authority": func(f *forgery) { f.by = must(pki.NewPoolAuthority("harbour", time.Now())) },
		"over":              func(f *forgery) { f.begin, f.end = f.begin.Add(-2*day), f.begin.Add(-day) },
		"not yet":           func(f *forgery) { f.begin = f.begin.Add(day) },
		"nothing":           nil,
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, dir, nil)
				b.run(time.Minute)
				first, good := b.serial(), b.cloud.answer
				b.cloud.answer = func(r *certificatesv1.CertificateSigningRequest) {
					if forge == nil {
						r.Status.Certificate = []byte("rubbish")
						return
					}
					f := &forgery{
						subject, b.authority, must(pki.ParseRequest(r.Spec.Request)).PublicKey, time.Now(), time.Now().Add(90 * day),
					}
					forge(f)
					template := must(pki.Must(pki.Hub).Template(f.subject, f.begin, 0))
					template.NotBefore, template.NotAfter = f.begin, f.end
					r.Status.Certificate = must(f.by.Sign(template, f.key))
				}
				b.untilDue(10 * time.Minute)
				if b.serial() != first || b.failed(mismatch) == 0 || b.said("what was signed is not used") != 1 {
					t.Fatalf("%v mismatches, log %s", b.failed(mismatch), b.log)
				}
				made := len(b.cloud.names)
				if b.run(time.Hour); len(b.cloud.names)-made > 20 {
					t.Errorf("%d requests in an hour", len(b.cloud.names)-made)
				}
				b.cloud.answer = good
				if b.run(10 * time.Minute); b.serial() == first {
					t.Error("a good one is not used")
				}
			})
		})
	}
}

// TestShortLives: a certificate that is due at once is not asked for again and again.
func TestShortLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "", nil)
		b.cloud.answer = func(r *certificatesv1.CertificateSigningRequest) {
			template := must(pki.Must(pki.Hub).Template(subject, time.Now(), day))
			template.NotBefore = time.Now().Add(-80 * day)
			r.Status.Certificate = must(b.authority.Sign(template, must(pki.ParseRequest(r.Spec.Request)).PublicKey))
		}
		b.run(time.Hour)
		if n := len(b.cloud.names); n < 2 || n > 30 || b.Get() == nil {
			t.Errorf("%d requests in an hour", n)
		}
	})
}

// TestAuthorities: once nobody who is trusted vouches for a certificate it is renewed, whatever is left of its life.
func TestAuthorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "", nil)
		b.run(time.Minute)
		first := b.serial()
		b.authority = must(pki.NewPoolAuthority("harbour", time.Now()))
		b.cloud.answer = signer(b.authority, 90*day)
		b.Look()
		if b.run(time.Minute); b.serial() == first || len(b.cloud.names) != 2 {
			t.Errorf("requests %v", b.cloud.names)
		}
	})
}

// TestSwitch: when another authority signs, what the one before signed is renewed soon, once, and not by all holders at
// the same time. It is good until then.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moments := map[time.Duration]bool{}
		for range 5 {
			before := must(pki.NewPoolAuthority("harbour", time.Now()))
			signs := before
			b := newBed(t, "", func(c *KeeperConfig) {
				c.Trusted = func() []*x509.Certificate { return []*x509.Certificate{signs.Cert(), before.Cert()} }
				c.Signs = func() *x509.Certificate { return signs.Cert() }
			})
			b.cloud.answer = signer(before, 90*day)
			b.run(time.Hour)
			first := b.serial()
			if len(b.cloud.names) != 1 {
				t.Fatalf("before: requests %v", b.cloud.names)
			}
			signs = must(pki.NewPoolAuthority("harbour", time.Now()))
			b.cloud.answer = signer(before, 90*day) // one that was signed a moment before
			b.Look()
			b.run(spread + 2*time.Second)
			if b.serial() == first || len(b.cloud.names) < 2 {
				t.Fatalf("not renewed: requests %v", b.cloud.names)
			}
			b.cloud.answer = signer(signs, 90*day)
			b.run(2 * spread)
			n := len(b.cloud.names)
			if !pki.IssuedBy(b.Get().Leaf, signs.Cert()) {
				t.Fatal("the one that was signed by the former authority stays")
			}
			moments[b.Get().Leaf.NotBefore.Sub(signs.Cert().NotBefore)] = true
			if b.run(day); len(b.cloud.names) != n {
				t.Errorf("renewed again: requests %v", b.cloud.names)
			}
		}
		if len(moments) < 2 {
			t.Error("all renew at the same time")
		}
	})
}

// TestNobodyIsKnown: the authority of a pool may be made by its first request. What is signed is used once the
// authority is known, and asked for once.
func TestNobodyIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known []*x509.Certificate
		b := newBed(t, "", func(c *KeeperConfig) { c.Trusted = func() []*x509.Certificate { return known } })
		if b.run(30 * time.Minute); len(b.cloud.names) != 1 || b.Get() != nil || b.said("are not known yet") != 1 {
			t.Fatalf("requests %v, log %s", b.cloud.names, b.log)
		}
		known = []*x509.Certificate{b.authority.Cert()}
		b.Look()
		if b.run(time.Minute); b.Get() == nil || len(b.cloud.names) != 1 {
			t.Errorf("requests %v", b.cloud.names)
		}
	})
}

// TestTakenBack: a certificate that others refuse is replaced at once, though its time has not come. One that is
// refused as soon as it is signed is not used, and asked for rarely.
func TestTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var before time.Time
		b := newBed(t, "", func(c *KeeperConfig) {
			c.Refused = func(cert *x509.Certificate) error {
				if cert.NotBefore.Before(before) {
					return errors.New("it is on the list")
				}
				return nil
			}
		})
		b.run(time.Minute)
		first := b.serial()
		time.Sleep(2 * time.Hour)
		before = time.Now().Add(-time.Hour - time.Minute) // certificates begin an hour before they are signed
		b.Look()
		if b.run(time.Minute); b.serial() == first || len(b.cloud.names) != 2 {
			t.Errorf("requests %v", b.cloud.names)
		}
		second := b.serial()
		before = time.Now().Add(24 * time.Hour)
		b.Look()
		if b.run(10 * time.Minute); b.serial() != second || len(b.cloud.names) > 12 || b.failed(mismatch) == 0 {
			t.Errorf("%d requests, %v refused", len(b.cloud.names), b.failed(mismatch))
		}
	})
}

// TestWanted: a certificate of an errand is asked for, and renewed, while somebody wants it. It is kept nowhere, and no
// authority is known.
func TestWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "", func(c *KeeperConfig) {
			c.Identity, c.Idle, c.Trusted = pki.Must(pki.Forwarder), true, nil
		})
		b.cloud.answer = func(r *certificatesv1.CertificateSigningRequest) {
			template := must(
				pki.Must(pki.Forwarder).Template(subject, time.Now(), time.Duration(*r.Spec.ExpirationSeconds)*time.Second))
			r.Status.Certificate = must(b.authority.Sign(template, must(pki.ParseRequest(r.Spec.Request)).PublicKey))
		}
		b.run(day)
		if b.Get() != nil || len(b.cloud.names) != 0 {
			t.Fatalf("requests %v", b.cloud.names)
		}
		b.Want(true)
		if b.run(time.Minute); b.Get() == nil || time.Until(b.Get().Leaf.NotAfter) > time.Hour {
			t.Fatalf("log %s", b.log)
		}
		b.run(day)
		if n := len(b.cloud.names); n < 28 || n > 40 || time.Now().After(b.Get().Leaf.NotAfter) {
			t.Errorf("%d requests in a day", n)
		}
		b.Want(false)
		n := len(b.cloud.names)
		if b.run(day); len(b.cloud.names) != n {
			t.Error("it is renewed, and nobody wants it")
		}
	})
}

// TestPatience: a cloud that signs nothing of a kind is asked by one request, and no more after an hour in which it
// answered. A restart asks again.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		change := func(c *KeeperConfig) {
			c.Identity = pki.Must(pki.Kubelet)
			c.Identity.Signer = contract.KubeletSigner
			c.Subject, c.Trusted, c.Patience = pki.Subject{Node: "edge-1"}, nil, time.Hour
		}
		b := newBed(t, dir, change)
		b.cloud.answer, b.cloud.away = nil, true
		b.run(2 * time.Hour)
		b.cloud.away = false
		b.run(59 * time.Minute)
		reads := b.cloud.reads
		if len(b.cloud.names) != 1 || reads < 5 || !b.Wanted() ||
			b.said("kube-apiserver-client-kubelet for its nodes?") != 1 {
			t.Errorf("requests %v, read %d times, log %s", b.cloud.names, reads, b.log)
		}
		b.run(10 * time.Minute)
		reads = b.cloud.reads
		if b.Wanted() || b.said("is not asked for any more") != 1 {
			t.Errorf("log %s", b.log)
		}
		if b.run(day); b.cloud.reads != reads {
			t.Error("it is asked for again")
		}
		b.cloud.answer = func(r *certificatesv1.CertificateSigningRequest) {
			template := must(pki.Must(pki.Kubelet).Template(pki.Subject{Node: "edge-1"}, time.Now(), day))
			r.Status.Certificate = must(b.authority.Sign(template, must(pki.ParseRequest(r.Spec.Request)).PublicKey))
		}
		b.open(dir, change)
		if b.run(time.Minute); b.Get() == nil || len(b.cloud.names) != 1 {
			t.Errorf("after a restart: requests %v, log %s", b.cloud.names, b.log)
		}
	})
}

// TestFullDisk: a disk that takes nothing is told and counted, and the certificate is used.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, dir, nil)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		b.run(time.Minute)
		if b.Get() == nil || b.failed(onDisk) == 0 || b.said("cannot be kept") == 0 {
			t.Errorf("log %s", b.log)
		}
	})
}

// TestBadConfig: what cannot be asked for is known at once.
func TestBadConfig(t *testing.T) {
	for field, change := range map[string]func(*KeeperConfig){
		"nobody signs": func(c *KeeperConfig) { c.Identity = pki.Must(pki.Viewer) },
		"life":         func(c *KeeperConfig) { c.Life = time.Minute },
		"pool":         func(c *KeeperConfig) { c.Subject.Pool = "a:b" },
		"node":         func(c *KeeperConfig) { c.Subject.Node = "" },
	} {
		c := KeeperConfig{
			Identity: pki.Must(pki.Hub), Subject: subject, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
			Metrics: NewKeeperMetrics(),
		}
		change(&c)
		if _, err := OpenKeeper(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
