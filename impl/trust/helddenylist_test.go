package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/pki"
)

// TestRefuse: what a deleted node had is refused, and nothing of others, nor what a node of its name gets later.
func TestRefuse(t *testing.T) {
	p := newDenier(t, "harbour")
	h := p.holder("")
	hosts := []string{"10.0.0.1"}
	gone := pki.Subject{Node: "edge-1", Name: "one", Hosts: hosts}
	p.take(h, p.first(noon, Denial{Node: "edge-1", Replica: "one", Hosts: hosts, Before: noon},
		Denial{Node: "edge-3", Before: noon}))
	for _, c := range []struct {
		about   string
		kind    pki.Kind
		subject pki.Subject
		at      time.Time
		refused bool
	}{
		{"its hub", pki.Hub, gone, noon.Add(-time.Hour), true},
		{"its hub, of a moment before", pki.Hub, gone, noon, true},
		{"its replica", pki.Replica, gone, noon.Add(-time.Hour), true},
		{"its coordinator", pki.Coordinator, gone, noon.Add(-time.Hour), true},
		{"another node's hub", pki.Hub, pki.Subject{Node: "edge-2"}, noon.Add(-time.Hour), false},
		{"a hub whose name begins so", pki.Hub, pki.Subject{Node: "edge-10"}, noon.Add(-time.Hour), false},
		{
			"another replica at the same address", pki.Replica, pki.Subject{Name: "two", Hosts: hosts}, noon.Add(-time.Hour),
			false,
		},
		{
			"a coordinator at another address", pki.Coordinator, pki.Subject{Hosts: []string{"10.0.0.2"}}, noon.Add(-time.Hour),
			false,
		},
		{"a person of that name", pki.Viewer, pki.Subject{Name: "edge-1"}, noon.Add(-time.Hour), false},
		{"the hub of a node of that name that came later", pki.Hub, gone, noon.Add(2 * time.Hour), false},
		{"a coordinator that came there later", pki.Coordinator, gone, noon.Add(2 * time.Hour), false},
		{"a replica of a node without one", pki.Replica, pki.Subject{Name: "edge-3", Hosts: hosts}, noon, false},
	} {
		err := h.Refuse(p.cert(c.kind, c.subject, c.at))
		var why *RefusedError
		if errors.As(err, &why) != c.refused {
			t.Errorf("%s: %v", c.about, err)
		}
	}
	if n := testutil.CollectAndCount(h); n != 3 {
		t.Errorf("%d metrics", n)
	}
}

// TestFloor: a certificate that begins at the floor counts at once, for each kind that the list refuses.
func TestFloor(t *testing.T) {
	p := newDenier(t, "harbour")
	s := pki.Subject{Pool: p.name, Node: "edge-1", Name: "one", Hosts: []string{"10.0.0.1"}}
	l := p.first(noon, Denial{Node: "edge-1", Replica: "one", Hosts: s.Hosts, Before: noon})
	h := p.holder("")
	p.take(h, l)
	for _, k := range []pki.Kind{pki.Hub, pki.Replica, pki.Coordinator} {
		i := pki.Must(k)
		c := must(i.Template(s, noon, i.Life.Usual))
		if floor := l.Floor(c.CommonName, c.Hosts, nil); !floor.Equal(noon.Add(time.Second)) {
			t.Errorf("floor of a %s: %s", k, floor)
		}
		r := must(pki.ParseRequest(must(i.Request(s, must(pki.NewKey())))))
		cert := must(
			pki.ParseCertificates(
				must(p.authority.AnswerFrom(l.Floor(c.CommonName, c.Hosts, nil), i, s, r, noon.Add(time.Minute), i.Life.Usual))))[0]
		if err := h.Refuse(cert); err != nil || cert.NotBefore.After(noon.Add(time.Minute)) {
			t.Errorf("a new %s that begins %s: %v", k, cert.NotBefore, err)
		}
	}
	soon, _ := l.Next(noon, Denial{Node: "edge-1", Before: noon}, Denial{Node: "edge-2", Replica: "one", Before: noon})
	for _, e := range soon.Entries {
		if !e.Before.Equal(noon.Add(time.Second)) {
			t.Errorf("taken back again within the second: %s until %s", e.Node, e.Before)
		}
	}
	if floor := l.Floor("system:node:edge-2", nil, nil); !floor.IsZero() {
		t.Errorf("floor of another: %s", floor)
	}
}

// TestForgedDenylist: a list that no authority of the pool signed, for this pool, as it stands, changes nothing.
func TestForgedDenylist(t *testing.T) {
	p, q := newDenier(t, "harbour"), newDenier(t, "quay")
	h := p.holder("")
	good := p.first(noon, Denial{Node: "edge-1", Before: noon})
	p.take(h, good)
	next, _ := good.Next(noon.Add(time.Hour), Denial{Node: "edge-2", Before: noon})
	leaf := must(p.authority.Grant(pki.Must(pki.Hub), pki.Subject{Pool: "harbour", Node: "edge-9"}, noon, time.Hour))
	hub := &pki.Authority{}
	if a, err := pki.LoadAuthority(leaf.CertPEM, leaf.KeyPEM); err == nil {
		hub = a
	}
	if hub.Cert() != nil {
		t.Error("a hub's certificate is taken for an authority's")
	}
	foreign := next
	foreign.Pool = "quay"
	twice := next
	twice.Entries = append(slices.Clone(next.Entries), next.Entries...)
	for about, text := range map[string][]byte{
		"by the authority of another pool": must(next.Sign(q.authority)),
		"of another pool":                  must(foreign.Sign(p.authority)),
		"altered":                          bytes.Replace(p.text(next), []byte("edge-2"), []byte("edge-3"), 1),
		"cut":                              p.text(next)[:60],
		"empty":                            []byte("{}"),
		"no signature":                     []byte(`{"list":{"pool":"harbour","number":99999999999999}}`),
		"too long":                         bytes.Repeat([]byte(" "), MaxDenylistText+1),
		"too many":                         bytes.Repeat([]byte("{}\n"), MaxDenylists+1),
	} {
		if changed, err := h.Take(text); err == nil || changed {
			t.Errorf("%s: changed %t, %v", about, changed, err)
		}
	}
	if _, err := twice.Sign(p.authority); err == nil {
		t.Error("a node twice is signed")
	}
	for about, l := range map[string]Denylist{
		"the same": good, "an older one": {Pool: p.name, Number: 7, Issued: noon.Add(-time.Hour), Entries: good.Entries},
	} {
		if changed, err := h.Take(p.text(l)); changed || err != nil && about != "the same" || h.Number() != good.Number {
			t.Errorf("%s: changed %t, %v", about, changed, err)
		}
	}
	p.take(h, next)
	if got := nodes(h); !slices.Equal(got, []string{"edge-1", "edge-2"}) || h.Number() != next.Number {
		t.Errorf("%v, number %d", got, h.Number())
	}
}

// TestRestoredCloud: the list of a cloud that was restored from before a deletion forgives nothing, and goes on above
// what is held.
func TestRestoredCloud(t *testing.T) {
	p := newDenier(t, "harbour")
	h := p.holder("")
	backup := p.first(noon, Denial{Node: "edge-1", Before: noon})
	p.take(h, backup)
	lost, _ := backup.Next(noon.Add(time.Hour), Denial{Node: "edge-2", Before: noon.Add(time.Hour)})
	p.take(h, lost)
	if changed, err := h.Take(p.text(backup)); changed || err != nil || h.Number() != lost.Number {
		t.Errorf("the list of the backup: changed %t, %v", changed, err)
	}
	restored, _ := backup.Next(noon.Add(2*time.Hour), Denial{Node: "edge-3", Before: noon.Add(2 * time.Hour)})
	p.take(h, restored)
	if got := nodes(h); h.Number() != restored.Number || !slices.Equal(got, []string{"edge-1", "edge-2", "edge-3"}) {
		t.Errorf("number %d, nodes %v", h.Number(), got)
	}
	other := p.holder("")
	text, tag := h.Text()
	if _, err := other.Take(text); err != nil || !slices.Equal(nodes(other), nodes(h)) {
		t.Errorf("who gets it from the pool has %v: %v", nodes(other), err)
	}
	if _, same := other.Text(); same != tag {
		t.Error("the same lists have another tag")
	}
	// Once the cloud knows of it, the list between goes.
	known, _ := restored.Next(noon.Add(3*time.Hour), Denial{Node: "edge-2", Before: noon.Add(time.Hour)})
	p.take(h, known)
	if text, _ := h.Text(); len(DenylistLines(text)) != 1 || len(nodes(h)) != 3 {
		t.Errorf("%d lists, nodes %v", len(DenylistLines(text)), nodes(h))
	}
	if late, _ := known.Next(noon.Add(2*time.Hour + DenialLasts())); len(late.Entries) != 0 {
		t.Errorf("after their end: %v", late.Entries)
	} else if p.take(h, late); len(nodes(h)) != 0 {
		t.Errorf("held after their end: %v", nodes(h))
	}
}

// TestKept: a restart forgets nothing, and half a file nothing else.
func TestKept(t *testing.T) {
	p, file := newDenier(t, "harbour"), filepath.Join(t.TempDir(), "denylist")
	h := p.holder(file)
	l := p.first(noon, Denial{Node: "edge-1", Before: noon})
	p.take(h, l)
	if again := p.holder(file); again.Number() != l.Number || len(again.Entries()) != 1 {
		t.Errorf("after a restart: %d, %v", again.Number(), again.Entries())
	}
	if info := must(os.Stat(file)); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	text := must(os.ReadFile(file))
	for about, bad := range map[string][]byte{
		"half": text[:len(text)/2], "altered": bytes.Replace(text, []byte("edge-1"), []byte("edge-7"), 1),
	} {
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		broken := p.holder(file)
		if broken.Number() != 0 || len(broken.Entries()) != 0 {
			t.Errorf("%s: %v", about, broken.Entries())
		}
		if _, err := broken.Take(text); err != nil {
			t.Error(err)
		}
		if got := must(os.ReadFile(file)); !bytes.Equal(got, text) {
			t.Errorf("%s: it is not mended: %q", about, got)
		}
	}
}

// TestGuard: what is open ends when a list comes, once, and nothing of others.
func TestGuard(t *testing.T) {
	p := newDenier(t, "harbour")
	h := p.holder("")
	var ended []string
	guard := func(name, node string) func() {
		return h.Guard(p.cert(pki.Hub, pki.Subject{Node: node}, noon), func(err error) {
			if why := (*RefusedError)(nil); !errors.As(err, &why) || why.Node != node {
				t.Errorf("%s: %v", name, err)
			}
			ended = append(ended, name)
		})
	}
	guard("open", "edge-1")
	over := guard("over", "edge-1")
	guard("another", "edge-2")
	over()
	l := p.first(noon, Denial{Node: "edge-1", Before: noon})
	p.take(h, l)
	guard("late", "edge-1")()
	l, _ = l.Next(noon.Add(time.Second))
	p.take(h, l)
	if want := []string{"open", "late"}; !slices.Equal(ended, want) {
		t.Errorf("ended %v, want %v", ended, want)
	}
}

// TestFull: a list that is full drops those whose certificates end first, and tells which.
func TestFull(t *testing.T) {
	p := newDenier(t, "harbour")
	var entries []Denial
	for i := range MaxDenials {
		entries = append(entries, Denial{
			Node: fmt.Sprintf("edge-%d", i), UID: strings.Repeat("x", 36), Before: noon.Add(time.Duration(i) * time.Second),
		})
	}
	l, dropped := Denylist{Pool: p.name}.Next(noon, entries...)
	if len(dropped) != 0 || len(l.Entries) != MaxDenials {
		t.Errorf("dropped %v", dropped)
	}
	l, dropped = l.Next(noon, Denial{Node: "edge-new", Before: noon.Add(time.Hour)},
		Denial{Node: "edge-newer", Before: noon.Add(time.Hour)})
	if len(dropped) != 2 || dropped[0].Node != "edge-0" || dropped[1].Node != "edge-1" {
		t.Errorf("dropped %v", dropped)
	}
	text := p.text(l)
	t.Logf("%d entries are %d bytes", len(l.Entries), len(text))
	h := p.holder("")
	if _, err := h.Take(text); err != nil || len(h.Entries()) != MaxDenials {
		t.Errorf("%d entries, %v", len(h.Entries()), err)
	}
	var wide []Denial
	for i := range MaxDenials {
		e := Denial{Node: fmt.Sprintf("edge-%d", i), Replica: "one", Before: noon.Add(time.Duration(i) * time.Second)}
		for j := range 2 * MaxHosts {
			e.Hosts, e.Keys = append(e.Hosts, fmt.Sprintf("fd00::%x:%x", i, j)), append(e.Keys, strings.Repeat("k", 32))
		}
		wide = append(wide, e)
	}
	if long, dropped := (Denylist{Pool: p.name}).Next(noon, wide...); len(p.text(long)) > maxList ||
		len(long.Entries)+len(dropped) != MaxDenials || dropped[0].Node != "edge-0" || len(long.Entries) < 64 {
		t.Errorf("with many addresses: %d entries, %d dropped", len(long.Entries), len(dropped))
	}
	again, _ := l.Next(noon, Denial{Node: "edge-9", Before: noon.Add(time.Hour)})
	if len(again.Entries) != MaxDenials || again.Number != l.Number+1 {
		t.Errorf("the same node twice: %d entries, number %d after %d", len(again.Entries), again.Number, l.Number)
	}
}

// TestDenylistAhead: no number and no time is ahead by more than an hour, so that a key that was stolen for a moment
// does not decide for ever. What is on the disk was looked at when it came.
func TestDenylistAhead(t *testing.T) {
	p, file := newDenier(t, "harbour"), filepath.Join(t.TempDir(), "denylist")
	h := p.holder(file)
	h.Time = pki.OpenProven("", clocktesting.NewFakePassiveClock(noon), slog.New(slog.DiscardHandler))
	late := noon.Add(bulletin.Ahead + time.Second)
	good := Denylist{
		Pool: "harbour", Number: bulletin.Next(0, noon.Add(bulletin.Ahead)), Issued: noon,
		Entries: []Denial{{Node: "edge-1", Before: noon.Add(bulletin.Ahead)}},
	}
	for about, change := range map[string]func(*Denylist){
		"number": func(l *Denylist) {
			l.Number = bulletin.Next(0, late)
		}, "the last number": func(l *Denylist) { l.Number = 1<<64 - 1 }, "issued": func(l *Denylist) { l.Issued = late },
		"before": func(l *Denylist) { l.Entries = []Denial{{Node: "edge-1", Before: late}} },
	} {
		l := good
		change(&l)
		if _, err := h.Take(p.text(l)); err == nil || !strings.Contains(err.Error(), "ahead") || h.Number() != 0 {
			t.Errorf("%s: %v", about, err)
		}
	}
	p.take(h, good)
	h.Time = nil
	if again := p.holder(file); again.Number() != good.Number {
		t.Error("what was kept does not count")
	}
}

// TestRetired: what an authority has signed that may not sign any more is valid until there is a list of one that may,
// whatever its number; and then no more.
func TestRetired(t *testing.T) {
	p := newDenier(t, "harbour")
	h := p.holder("")
	before := p.authority
	stolen := Denylist{
		Pool: "harbour", Number: bulletin.Next(0, noon.Add(time.Hour)), Issued: noon,
		Entries: []Denial{{Node: "edge-1", Before: noon}, {Node: "edge-2", Before: noon}},
	}
	p.take(h, stolen)
	p.authority = must(pki.NewPoolAuthority("harbour", noon.Add(time.Minute)))
	both := []*x509.Certificate{p.authority.Cert(), before.Cert()}
	h.Trusted, h.Speakers = func() []*x509.Certificate { return both },
		func() []*x509.Certificate { return pki.Speakers(both) }
	if got := nodes(h); !slices.Equal(got, []string{"edge-1", "edge-2"}) {
		t.Errorf("before there is another list: %v", got)
	}
	p.take(h, p.first(noon, Denial{Node: "edge-2", Before: noon}))
	if got := nodes(h); !slices.Equal(got, []string{"edge-2"}) {
		t.Errorf("after it: %v", got)
	}
	stolen.Number++
	if changed, err := h.Take(must(stolen.Sign(before))); changed || err != nil || len(nodes(h)) != 1 {
		t.Errorf("a later one of the authority before: %t, %v, %v", changed, err, nodes(h))
	}
	// The list may come first, and that its authority signs after it.
	first := newDenier(t, "harbour")
	h = first.holder("")
	first.take(h, stolen)
	second := must(pki.NewPoolAuthority("harbour", noon.Add(time.Minute)))
	next := []*x509.Certificate{first.authority.Cert(), second.Cert()}
	h.Trusted, h.Speakers = func() []*x509.Certificate { return next },
		func() []*x509.Certificate { return pki.Speakers(next) }
	must(h.Take(must(first.first(noon).Sign(second))))
	if len(nodes(h)) != 2 {
		t.Errorf("while both may sign: %v", nodes(h))
	}
	slices.Reverse(next)
	must(h.Take(must(first.first(noon).Sign(second)))) // as it is shown again
	if len(nodes(h)) != 0 {
		t.Errorf("after the switch: %v", nodes(h))
	}
	// Of an authority that is no longer valid nothing is left.
	h = first.holder("")
	h.Speakers = h.Trusted
	first.take(h, stolen)
	h.Trusted = func() []*x509.Certificate { return next[:1] }
	if h.Judge(); len(nodes(h)) != 0 {
		t.Errorf("after a theft: %v", nodes(h))
	}
}
