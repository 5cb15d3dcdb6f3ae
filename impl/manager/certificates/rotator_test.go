package certificates

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// wheel is a Rotator at a cluster in memory, and a hub of the pool harbour that follows what it publishes.
type wheel struct {
	*Rotator
	t        *testing.T
	cluster  *cluster
	clock    *clocktesting.FakePassiveClock
	events   chan string
	hub      *trust.Held // by the cloud
	peer     *trust.Held // by signatures alone
	resigned int
	away     []string             // nodes that have not heard of what is published
	asked    uint64               // the number of what they were asked for
	ends     map[string]time.Time // of authorities
}

var poolKey = types.NamespacedName{Namespace: contract.KeyNamespace, Name: "pool-harbour"}

func newWheel(t *testing.T) *wheel {
	recorder := events.NewFakeRecorder(100)
	w := &wheel{
		t: t, cluster: newCluster(), clock: clocktesting.NewFakePassiveClock(now), events: recorder.Events,
		away: []string{"edge-9"}, ends: map[string]time.Time{},
	}
	w.Rotator = w.another(recorder)
	if _, err := w.vault.open(t.Context(), "harbour"); err != nil {
		t.Fatal(err)
	}
	first := w.kept().Signer.Cert()
	file := func() []*x509.Certificate { return []*x509.Certificate{first} }
	for _, h := range []**trust.Held{&w.hub, &w.peer} {
		*h = trust.New(trust.Config{Pool: "harbour", First: file, Logger: slog.New(slog.DiscardHandler)})
	}
	return w
}

// another is a manager at the same cluster.
func (w *wheel) another(recorder events.EventRecorder) *Rotator {
	return NewRotator(RotatorConfig{
		Client: w.cluster, Reader: w.cluster, Events: recorder, Clock: w.clock, Metrics: NewMetrics(),
		Log:      slog.New(slog.DiscardHandler),
		Kept:     func(_ context.Context, pool string) bool { return pool == "harbour" },
		Switched: func(_ context.Context, pool string) error { w.resigned++; return nil },
		Away: func(_ context.Context, _ string, number uint64) ([]string, error) {
			w.asked = number
			return w.away, nil
		},
		Ends: func(pool string, end time.Time) { w.ends[pool] = end },
	})
}

// turn reconciles once, after a time, and lets hubs hear of it. It returns when it wants to be asked again.
func (w *wheel) turn(after time.Duration) time.Duration {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(after))
	r, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "harbour"}})
	if err != nil {
		w.t.Fatal(err)
	}
	text := []byte(w.told().Data[contract.TrustKey])
	must(w.hub.TakeOfCloud(text))
	_, _ = w.peer.Take(text)
	return r.RequeueAfter
}

func (w *wheel) told() *corev1.ConfigMap {
	w.t.Helper()
	m := &corev1.ConfigMap{}
	if err := w.cluster.Get(w.t.Context(), poolKey, m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *wheel) secret() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.cluster.Get(w.t.Context(), poolKey, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *wheel) kept() *pki.Succession { return must(pki.LoadSuccession(w.secret().Data)) }

func (w *wheel) ask(text string) {
	m := w.told()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[contract.RotateAnnotation] = text
	w.cluster.put(m)
}

func (w *wheel) progress() (p trust.Progress) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.told().Annotations[contract.RotationAnnotation]), &p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// same fails unless all that verify trust what the manager does.
func (w *wheel) same(step string, n int) {
	w.t.Helper()
	if p := w.progress(); p.Step != step || p.Trusted != n {
		w.t.Errorf("step %s, %d are trusted, want %s and %d", p.Step, p.Trusted, step, n)
	}
	s := w.kept()
	for who, h := range map[string]*trust.Held{"a hub": w.hub, "a peer": w.peer} {
		if have := h.List(); len(have) != n || !h.Signer().Equal(s.Signer.Cert()) {
			w.t.Errorf("%s trusts %d, want %d", who, len(have), n)
		}
	}
}

const order = `{"id":"one","settle":"1m","overlap":"1h"}`

// TestRotate: a rotation that somebody asks for goes its way by itself, and all who verify follow, whether they reach
// the cloud or not.
func TestRotate(t *testing.T) {
	w := newWheel(t)
	if wait := w.turn(0); wait != lookEvery {
		t.Errorf("asked again after %s", wait)
	}
	w.same(trust.Steady, 1)
	a := w.kept().Signer.Cert()
	version := w.told().ResourceVersion
	if w.turn(time.Hour); w.told().ResourceVersion != version {
		t.Error("nothing happens, and something is written")
	}
	w.ask(order)
	w.turn(0)
	w.same(trust.Prepared, 2)
	if p := w.progress(); p.Order != "one" || p.Refused != "" || w.told().Annotations[contract.RotateAnnotation] != "" ||
		len(w.events) != 1 {
		t.Errorf("%+v, %v, %d Events", p, w.told().Annotations, len(w.events))
	}
	w.turn(59 * time.Second)
	w.same(trust.Prepared, 2)
	if w.turn(time.Second); w.resigned != 1 || w.kept().Signer.Cert().Equal(a) {
		t.Error("it does not sign, or what the one before has signed is not signed anew")
	}
	w.same(trust.Switched, 2)
	if n := testutil.ToFloat64(w.Metrics.ends.WithLabelValues("harbour", beforeRole)); n != float64(a.NotAfter.Unix()) {
		t.Errorf("the one before ends at %v", n)
	}
	w.turn(59 * time.Minute)
	w.same(trust.Switched, 2)
	w.turn(time.Minute)
	w.same(trust.Steady, 1)
	if n := testutil.CollectAndCount(w.Metrics.ends); n != 1 {
		t.Errorf("%d ends", n)
	}
}

// heard is the Event of a reason, "" if there was none of it.
func (w *wheel) heard(reason string) string {
	for {
		select {
		case e := <-w.events:
			if strings.Contains(e, " "+reason+" ") {
				return e
			}
		default:
			return ""
		}
	}
}

// TestHeard: the next authority signs as soon as all of the pool have told that they know it, and those who tell of
// nothing had a moment. A hub that is away is waited for until the time that was ordered, and named then.
func TestHeard(t *testing.T) {
	w := newWheel(t)
	w.turn(0)
	w.ask(order)
	w.turn(0)
	number := w.hub.Number()
	if wait := w.turn(30 * time.Second); wait != 30*time.Second || w.asked != number {
		t.Errorf("asked for number %d, want %d; again after %s", w.asked, number, wait)
	}
	w.same(trust.Prepared, 2)
	w.away = nil
	w.turn(0)
	w.same(trust.Switched, 2)
	if w.heard("MembersAway") != "" || w.resigned != 1 {
		t.Errorf("resigned %d times", w.resigned)
	}
	if p := w.progress(); !p.Due.Equal(w.clock.Now().Add(time.Hour).Truncate(time.Second)) &&
		p.Due.Sub(w.clock.Now()) != time.Hour {
		t.Errorf("due at %s", p.Due)
	}

	w.turn(time.Hour)
	w.ask(strings.Replace(order, "one", "two", 1))
	w.turn(0)
	if wait := w.turn(9 * time.Second); wait != time.Second {
		t.Errorf("who tells of nothing has %s more", wait)
	}
	w.same(trust.Prepared, 2)
	w.turn(time.Second)
	w.same(trust.Switched, 2)

	w.turn(time.Hour)
	w.away = []string{"a", "b", "c", "d", "e", "f"}
	w.ask(strings.Replace(order, "one", "three", 1))
	w.turn(0)
	w.turn(59 * time.Second)
	w.same(trust.Prepared, 2)
	w.turn(time.Second)
	w.same(trust.Switched, 2)
	if e := w.heard("MembersAway"); !strings.Contains(e, "6 nodes") || !strings.Contains(e, "(a, b, c, d, e)") {
		t.Errorf("of those who are away: %q", e)
	}
}

// TestAwayForAll: a member that was away during a whole rotation follows the chain of bundles when it is back, from its
// pool alone, and takes what the new authority signed.
func TestAwayForAll(t *testing.T) {
	w := newWheel(t)
	w.turn(0)
	back := trust.New(trust.Config{
		Pool: "harbour", First: func() []*x509.Certificate { return []*x509.Certificate{w.kept().Signer.Cert()} },
		Logger: slog.New(slog.DiscardHandler),
	})
	if _, err := back.Take([]byte(w.told().Data[contract.TrustKey])); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, time.Minute, time.Hour} {
		if wait == 0 {
			w.ask(order)
		}
		w.turn(wait)
	}
	w.same(trust.Steady, 1)
	text, _ := w.peer.Text()
	if changed, err := back.Take(text); err != nil || !changed || !back.Signer().Equal(w.kept().Signer.Cert()) ||
		len(back.List()) != 1 {
		t.Errorf("it holds %d authorities: %v", len(back.List()), err)
	}
}

// TestRecall: a cluster that was restored from before a rotation hears of it by what hubs give back. The old authority
// signs again, by a bundle above what hubs hold; that of the rotation is valid until what it signed is renewed. What
// the old authority does not vouch for is nothing.
func TestRecall(t *testing.T) {
	for name, upTo := range map[string][]time.Duration{
		"before the switch": {0}, "after it": {0, time.Minute}, "at its end": {0, time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWheel(t)
			w.turn(0)
			told, secret := w.told(), w.secret()
			first := w.kept().Signer.Cert()
			w.ask(order)
			for _, wait := range upTo {
				w.turn(wait)
			}
			held := w.hub.List()
			number := w.hub.Number()
			text, _ := w.hub.Text()

			w.cluster.put(told)
			w.cluster.put(secret)
			w.clock.SetTime(w.clock.Now().Add(-bulletin.Ahead / 2)) // and its clock is behind
			back := &corev1.ConfigMap{ObjectMeta: meta("returned-harbour"), Data: map[string]string{}}
			stranger := &pki.Succession{Signer: must(pki.NewPoolAuthority("harbour", now))}
			back.Data[contract.TrustKey] = string(must(trust.Publish(nil, "harbour", stranger, number+1000, now)))
			w.cluster.put(back)
			version := w.told().ResourceVersion
			if r := must(w.Reconcile(t.Context(), reconcile.Request{
				NamespacedName: types.NamespacedName{Name: "harbour"},
			})); r.RequeueAfter <= 0 || w.told().ResourceVersion != version {
				t.Fatal("what a stranger signed is recalled")
			}
			back.Data[contract.TrustKey] = string(text)
			w.cluster.put(back)
			w.turn(0)
			if w.hub.Number() <= number || !w.hub.Signer().Equal(first) {
				t.Errorf("the hub holds %d, signed by %s", w.hub.Number(), trust.Name(w.hub.Signer()))
			}
			for _, c := range held {
				if !slices.ContainsFunc(w.hub.List(), c.Equal) {
					t.Errorf("%s counts no more", trust.Name(c))
				}
			}
			version = w.told().ResourceVersion
			if w.turn(time.Minute); w.told().ResourceVersion != version {
				t.Error("what was given back is published again")
			}
			w.turn(pki.MostOverlap)
			if n := len(w.hub.List()); n != 1 {
				t.Errorf("%d count at the end", n)
			}
		})
	}
}

// TestAuthorityEnds: from 30 days before its end it is told, once a day, that an authority without a successor ends;
// and that it has ended.
func TestAuthorityEnds(t *testing.T) {
	w := newWheel(t)
	w.turn(0)
	end := w.kept().Signer.Cert().NotAfter
	if !w.ends["harbour"].Equal(end) || w.heard(contract.AuthorityEndsSoon) != "" {
		t.Errorf("it ends at %s", w.ends["harbour"])
	}
	w.clock.SetTime(end.Add(-30*24*time.Hour - time.Second))
	if w.measure(must(w.read(t.Context(), "harbour")), w.clock.Now()); w.heard(contract.AuthorityEndsSoon) != "" {
		t.Error("told too soon")
	}
	for n := range 50 {
		w.clock.SetTime(end.Add(-30*24*time.Hour + time.Duration(n)*time.Hour))
		w.measure(must(w.read(t.Context(), "harbour")), w.clock.Now())
	}
	told := 0
	for e := w.heard(contract.AuthorityEndsSoon); e != ""; e = w.heard(contract.AuthorityEndsSoon) {
		if told++; !strings.Contains(e, "weir pki rotate --pool harbour") {
			t.Error(e)
		}
	}
	if told != 3 {
		t.Errorf("told %d times in 50 hours", told)
	}
	w.clock.SetTime(end)
	if w.measure(must(w.read(t.Context(), "harbour")), end); w.heard(contract.AuthorityEnded) == "" {
		t.Error("its end is not told")
	}
}

// TestRotateTwice: a second order within a minute is refused with a reason, and breaks nothing; nor do five.
func TestRotateTwice(t *testing.T) {
	w := newWheel(t)
	w.ask(order)
	w.turn(0)
	next := w.kept().Next.Cert()
	w.ask(strings.Replace(order, "one", "two", 1))
	w.turn(30 * time.Second)
	w.same(trust.Prepared, 2)
	if p := w.progress(); p.Order != "two" ||
		!strings.Contains(p.Refused, "none until the one that was prepared before signs") ||
		!w.kept().Next.Cert().Equal(next) {
		t.Errorf("%+v", p)
	}
	if w.turn(0); w.told().Annotations[contract.RotateAnnotation] != "" || w.progress().Refused == "" {
		t.Error("it is asked again and again, or what became of it is forgotten")
	}
	for i := range 6 {
		w.turn(time.Minute)
		w.ask(strings.Replace(order, "one", fmt.Sprint("again-", i), 1))
		w.turn(0)
	}
	if p := w.progress(); len(w.kept().Trusted()) != 4 || !strings.Contains(p.Refused, "4 at most") {
		t.Errorf("%d are trusted, %+v", len(w.kept().Trusted()), p)
	}
	w.same(trust.Switched, 4)
}

// TestBadOrders: what is invalid is refused with a reason, and nothing changes.
func TestBadOrders(t *testing.T) {
	w := newWheel(t)
	for want, text := range map[string]string{
		"unexpected end": `{"id":"x"`, "settle": `{"id":"x","settle":"1s","overlap":"1h"}`,
		"overlap":          `{"id":"x","settle":"1m","overlap":"9999h"}`,
		"the key is there": `{"id":"x","settle":"1m","overlap":"1h","lostKey":true}`,
		"bytes":            `{"id":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		w.ask(text)
		w.turn(0)
		if p := w.progress(); !strings.Contains(p.Refused, want) || w.told().Annotations[contract.RotateAnnotation] != "" {
			t.Errorf("%s: %+v", want, p)
		}
		w.same(trust.Steady, 1)
	}
	if r, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "nowhere"}}); err !=
		nil || r.RequeueAfter != lookEvery {
		t.Errorf("a pool without an authority: %v, %v", r, err)
	}
}

// TestSchedule: an authority that is due is replaced without anybody's asking, with the usual times.
func TestSchedule(t *testing.T) {
	w := newWheel(t)
	w.turn(pki.AuthorityLife / 100 * 69)
	w.same(trust.Steady, 1)
	w.turn(pki.AuthorityLife / 100 * 12)
	w.same(trust.Prepared, 2)
	w.turn(pki.Usual().Settle)
	w.same(trust.Switched, 2)
	w.turn(pki.MostOverlap)
	w.same(trust.Steady, 1)
}

// TestReplaced: a key that is lost, or half, is replaced by one order. The new one signs when all can have heard of it,
// and the leaves of before count until then.
func TestReplaced(t *testing.T) {
	const lost = `{"id":"lost","settle":"1m","overlap":"1h","lostKey":true}`
	for what, lose := range map[string]func(*wheel){
		"gone": func(w *wheel) { delete(w.cluster.objects, keyOf(&corev1.Secret{}, poolKey)) },
		"half": func(w *wheel) {
			s := w.secret()
			s.Data["tls.key"] = s.Data["tls.key"][:60]
			w.cluster.put(s)
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWheel(t)
			w.turn(0)
			a := w.kept().Signer.Cert()
			lose(w)
			w.ask(order)
			w.turn(0)
			if p := w.progress(); !strings.Contains(p.Refused, "--lost-key") {
				t.Errorf("%+v", p)
			}
			w.ask(lost)
			w.turn(0)
			if p := w.progress(); p.Step != trust.Replaced || p.Trusted != 2 || w.kept().MaySign(w.clock.Now()) == nil {
				t.Errorf("%+v", p)
			}
			if !w.hub.List()[1].Equal(a) || !w.peer.Signer().Equal(a) {
				t.Error("a hub does not follow the cloud, or a peer follows what nobody vouches for")
			}
			w.turn(time.Minute)
			if w.kept().MaySign(w.clock.Now()) != nil {
				t.Error("it does not sign")
			}
			if w.turn(time.Hour); len(w.hub.List()) != 1 {
				t.Errorf("%d are trusted", len(w.hub.List()))
			}
		})
	}
}

// TestTwoRotators: of two managers at once one takes a step. A manager that is stopped in the middle of it goes on.
func TestTwoRotators(t *testing.T) {
	w := newWheel(t)
	w.turn(0)
	other := w.another(events.NewFakeRecorder(100))
	w.ask(order)
	w.cluster.before = func() { // before this one has written its Secret
		if _, err := other.Reconcile(t.Context(), reconcile.Request{
			NamespacedName: types.NamespacedName{Name: "harbour"},
		}); err != nil {
			t.Error(err)
		}
	}
	if wait := w.turn(0); wait != lag {
		t.Errorf("asked again after %s", wait)
	}
	next := w.kept().Next.Cert()
	w.ask(order) // as if the other one was stopped before it could say so
	w.turn(0)
	w.same(trust.Prepared, 2)
	if !w.kept().Next.Cert().Equal(next) || w.progress().Refused != "" ||
		w.told().Annotations[contract.RotateAnnotation] != "" {
		t.Errorf("%+v", w.progress())
	}
}

// TestStolenKey: after a theft nothing that was signed before counts any more, and the new bundle is above whatever a
// thief can have made a pool believe: that of an authority of its own, as far ahead as is taken. What hubs gave back of
// it is nothing. It may be ordered while another rotation is under way.
func TestStolenKey(t *testing.T) {
	w := newWheel(t)
	w.turn(0)
	stolen := w.kept().Signer
	for _, h := range []*trust.Held{w.hub, w.peer} {
		h.Time = pki.OpenProven("", w.clock, slog.New(slog.DiscardHandler))
	}
	evil := must(pki.NewPoolAuthority("harbour", now))
	text, _ := w.hub.Text()
	wedge := must(trust.Publish(text, "harbour", &pki.Succession{Signer: stolen, Next: evil},
		bulletin.Next(0, w.clock.Now().Add(bulletin.Ahead)), now))
	for _, h := range []*trust.Held{w.hub, w.peer} {
		if _, err := h.Take(wedge); err != nil || len(h.List()) != 2 {
			t.Fatalf("the thief: %d are trusted, %v", len(h.List()), err)
		}
	}
	w.ask(order)
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "harbour"}}); err !=
		nil {
		t.Fatal(err)
	}
	w.ask(`{"id":"theft","settle":"10s","overlap":"30s","stolenKey":true}`)
	w.turn(time.Second)
	fresh := w.kept()
	if len(fresh.Trusted()) != 1 || fresh.Signer.Cert().Equal(stolen.Cert()) || fresh.MaySign(w.clock.Now()) == nil {
		t.Errorf("%d are trusted", len(fresh.Trusted()))
	}
	if got := w.hub.List(); len(got) != 1 || !got[0].Equal(fresh.Signer.Cert()) {
		t.Fatalf("the hub trusts %d", len(got))
	}
	w.cluster.put(&corev1.ConfigMap{
		ObjectMeta: meta("returned-harbour"), Data: map[string]string{contract.TrustKey: string(wedge)},
	})
	later := must(trust.Publish(wedge, "harbour", &pki.Succession{Signer: evil}, w.hub.Number()+1, w.clock.Now()))
	if _, err := w.hub.Take(later); err == nil || len(w.hub.List()) != 1 {
		t.Errorf("the thief is believed again: %v", err)
	}
	w.turn(time.Minute)
	w.turn(time.Minute)
	if p := w.progress(); p.Step != trust.Steady || p.Trusted != 1 || w.resigned == 0 {
		t.Errorf("%+v, signed anew %d times", p, w.resigned)
	}
}

// Each news of a node asks for a look at its pool: with thousands of nodes those looks are requests of their own.
func TestNothingIsAskedForAPoolWithoutAnAuthority(t *testing.T) {
	w := newWheel(t)
	w.Reader = nil
	for _, pool := range []string{"quay", "pier"} {
		again, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
		if err != nil || again.RequeueAfter != lookEvery {
			t.Errorf("pool %s: again after %v (%v), expected after %v", pool, again.RequeueAfter, err, lookEvery)
		}
	}
}
