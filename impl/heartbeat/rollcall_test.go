package heartbeat

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

var rollEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestChain: the link of a period proves that period to those who know the anchor, and no other period, of no other
// node.
func TestChain(t *testing.T) {
	c := NewChain("edge-1", [16]byte{1}, 100)
	a := c.Anchor()
	for _, p := range []uint64{101, 102, 100 + ChainLength} {
		l, ok := c.Link(p)
		if !ok || !a.Proves("edge-1", p, l) || a.Proves("edge-1", p+1, l) || a.Proves("edge-1", p-1, l) ||
			a.Proves("edge-2", p, l) {
			t.Errorf("period %d: link %t does not prove it, or more", p, ok)
		}
	}
	for _, p := range []uint64{0, 99, 100, 101 + ChainLength} {
		if _, ok := c.Link(p); ok || a.Proves("edge-1", p, a.Link) {
			t.Errorf("period %d has a link", p)
		}
	}
	for p, want := range map[uint64]bool{
		99: true, 100: false, 100 + ChainLength - chainReserve: false, 101 + ChainLength - chainReserve: true,
	} {
		if c.Ends(p) != want {
			t.Errorf("it ends at %d: %t", p, !want)
		}
	}
	if got, err := ParseAnchor(a.String()); err != nil || got != a {
		t.Errorf("read back %v %v", got, err)
	}
	for _, s := range []string{"", "2s", "2s x", "02s " + a.String()[3:], a.String() + "A"} {
		if _, err := ParseAnchor(s); err == nil {
			t.Errorf("%q is read", s)
		}
	}
}

func entry(node string, period uint64, reaches bool) Entry {
	return Entry{Node: node, Period: period, Link: Link{byte(period)}, Reaches: reaches}
}

// TestReport: what a report of twenty nodes looks like, and that it is read as it was written.
func TestReport(t *testing.T) {
	var all []Entry
	for i := range 20 {
		all = append(all, entry(fmt.Sprintf("edge-%d.example", i), 1000, true))
	}
	all[3].Reaches, all[4].Period, all[5].Period = false, 998, 900
	all = append(all, entry("later", 1001, true), entry("edge-7.example", 999, true))
	r, left := NewReport(1000, all)
	if len(r.Entries) != 19 || left != 0 {
		t.Fatalf("%d entries, %d left out", len(r.Entries), left)
	}
	const want = "rs Aedge-0.exampleF1.exampleG0.exampleG1.exampleG2.exampleG3.exampleG4.exampleG5.exampleG6.example" +
		"G7.exampleG8.exampleG9.exampleF2.exampleF_3.exampleF*4.exampleF6.exampleF7.exampleF8.exampleF9.example"
	if r.Roster() != want {
		t.Errorf("roster\n%s, want\n%s", r.Roster(), want)
	}
	if got, err := ParseReport(r.String()); err != nil || !slices.Equal(got.Entries, r.Entries) || got.Period != 1000 {
		t.Errorf("read back %v %v", got, err)
	}
	i := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Node == "edge-7.example" })
	if r.Entries[i].Period != 1000 {
		t.Errorf("of two entries of a node the older one is reported")
	}
}

// TestReportErrors: an error names the field.
func TestReportErrors(t *testing.T) {
	link := strings.Repeat("A", 22)
	for text, want := range map[string]string{
		"":                         "links",
		"A a " + link:              "period",
		"0a Aa " + link:            "period",
		"a " + link:                "names",
		"a ab " + link:             "names",
		"a Ba " + link:             "names",
		"a AaAa " + link:           "names",
		"a AbAa " + link:           "names",
		"a A-a " + link:            "node",
		"a AabAac " + link + link:  "names",
		"0 Aa " + link:             "period",
		"1 A;a " + link:            "period",
		"a Aa AAAA":                "links",
		"a Aa !":                   "links",
		strings.Repeat("a", 40000): "length",
		"a A" + strings.Repeat("a", 300) + " " + link: "node",
	} {
		if _, err := ParseReport(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s named", text, err, want)
		}
	}
}

// TestReportBounds: more nodes than there may be, and the longest names, make a report that can be read.
func TestReportBounds(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 60)+".", 4)
	for name, prefix := range map[string]string{"many": "n", "long": long} {
		var all []Entry
		for i := range 600 {
			all = append(all, entry(fmt.Sprintf("%03d%s%03d", i, prefix, i), 7, true))
		}
		r, left := NewReport(7, all)
		got, err := ParseReport(r.String())
		if err != nil || len(got.Entries)+left != 600 || len(got.Entries) > MaxRoll || len(got.Entries) < 100 {
			t.Errorf("%s: %d entries, %d left out, %v", name, len(got.Entries), left, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	r, _ := NewReport(1000, []Entry{entry("edge-1", 1000, true), entry("edge-2", 998, false)})
	f.Add(r.String())
	f.Add("0  ")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReport(text)
		if err == nil && r.String() != text {
			t.Errorf("%q is read, and written as %q", text, r.String())
		}
		if _, err := OpenReceipt(text, "shop", pki.Vouches, nil); err == nil {
			t.Errorf("%q is a receipt that nobody has signed", text)
		}
		if a, err := ParseAnchor(text); err == nil && a.String() != text {
			t.Errorf("%q is read, and written as %q", text, a)
		}
	})
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewPoolAuthority("shop", rollEpoch)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestReceipt: a receipt says of each node of one roster whether it was renewed, and what documents the pool has. Only
// an authority of the pool can write it.
func TestReceipt(t *testing.T) {
	a, other := authority(t), authority(t)
	r, _ := NewReport(10, []Entry{entry("a", 10, true), entry("b", 9, true), entry("c", 10, true)})
	trusted := []*x509.Certificate{other.Cert(), a.Cert()}
	for _, documents := range []string{"", "abcdEF-_"} { // a weir-manager of before says nothing of them
		testReceipt(t, a, r, documents, trusted)
	}
	for _, documents := range []string{"abc", "abcdEF-!", "abcdEF-_AAAA", "abcd EF-"} {
		c := newReceipt(12, r, nil)
		c.Documents = documents
		text, err := c.Sign(a, "shop")
		if err == nil {
			_, err = OpenReceipt(text, "shop", pki.Vouches, trusted)
		}
		if err == nil {
			t.Errorf("documents %q are taken", documents)
		}
	}
}

func testReceipt(t *testing.T, a *pki.Authority, r Report, documents string, trusted []*x509.Certificate) {
	t.Helper()
	c := newReceipt(12, r, []bool{true, true, false})
	c.Documents = documents
	text, err := c.Sign(a, "shop")
	if err != nil {
		t.Fatal(err)
	}
	c, err = OpenReceipt(text, "shop", pki.Vouches, trusted)
	if err != nil || c.Period != 12 || c.Documents != documents {
		t.Fatalf("%v %v", c, err)
	}
	for node, want := range map[string]uint64{"a": 10, "b": 9, "c": 0, "d": 0} {
		if p, yes := c.Renewed(r.Roster(), node); p != want || yes != (want > 0) {
			t.Errorf("%s: renewed %t, of period %d", node, yes, p)
		}
	}
	forged, _ := NewReport(10, []Entry{entry("a", 10, true), entry("c", 10, true)})
	if _, yes := c.Renewed(forged.Roster(), "c"); yes {
		t.Error("with another roster it says that another node was renewed")
	}
	if _, err := OpenReceipt(text, "other", pki.Vouches, trusted); err == nil {
		t.Error("it is good for another pool")
	}
	if _, err := OpenReceipt(text, "shop", pki.Vouches, trusted[:1]); err == nil {
		t.Error("it is good without its authority")
	}
	for i := range strings.LastIndexByte(text, ' ') {
		changed := []byte(text)
		changed[i] ^= 1
		if _, err := OpenReceipt(string(changed), "shop", pki.Vouches, trusted); err == nil {
			t.Errorf("byte %d can be changed: %q", i, changed)
		}
	}
}

// TestPeriods: numbers grow with the time of day, and grow also when that is set back.
func TestPeriods(t *testing.T) {
	at := uint64(rollEpoch.Unix()) / 8
	for _, c := range []struct {
		last, want uint64
		clock      time.Time
	}{
		{0, at, rollEpoch},
		{at, at + 1, rollEpoch},
		{at, at + 7, rollEpoch.Add(time.Minute)},
		{at, at + 1, rollEpoch.Add(-time.Hour)},
		{3, 4, time.Unix(-5, 0)},
	} {
		if got := next(c.last, c.clock); got != c.want {
			t.Errorf("after %d at %v: %d, want %d", c.last, c.clock, got, c.want)
		}
	}
}

// TestRollCall: one entry for each node, of so many nodes, until the leader collects them.
func TestRollCall(t *testing.T) {
	var d RollCall
	for i := range MaxRoll + 1 {
		if _, err := d.HandIn(entry(fmt.Sprint("n", i), 5, true)); (err != nil) != (i == MaxRoll) {
			t.Fatalf("node %d: %v", i, err)
		}
	}
	if _, err := d.HandIn(entry("n7", 6, true)); err != nil {
		t.Errorf("a node that is there: %v", err)
	}
	if _, err := d.HandIn(entry("N7", 6, true)); err == nil {
		t.Error("an entry of no node is taken")
	}
	if err := d.Post(Notice{Receipt: "r"}); err != nil {
		t.Error(err)
	}
	if err := d.Post(Notice{Receipt: strings.Repeat("x", MaxReceipt+1)}); err == nil {
		t.Error("a notice has no bound")
	}
	_ = d.Post(Notice{})
	n, err := d.HandIn(Entry{})
	if all := d.Collect(); len(all) != MaxRoll || err != nil || n.Receipt != "r" || len(d.Collect()) != 0 {
		t.Errorf("%d entries, notice %v, %v", len(all), n, err)
	}
}

// TestCaller: a leader that has no answer pauses for longer and longer, and one that has goes on each ten seconds.
func TestCaller(t *testing.T) {
	var c Caller
	c.Lead(0)
	receipt := func(period uint64) Receipt { return newReceipt(period, Report{}, nil) }
	now, dues := time.Duration(0), []time.Duration(nil)
	for range 15 {
		now = c.Due()
		c.Report(now, nil)
		c.Answered(now, receipt(0), "")
		dues = append(dues, (c.Due()-now)/time.Second)
	}
	want := []time.Duration{10, 10, 60, 10, 10, 120, 10, 10, 240, 10, 10, 480, 10, 10, 600}
	if !slices.Equal(dues, want) {
		t.Errorf("not answered: %d, want %d", dues, want)
	}
	for i := range 5 {
		now = c.Due()
		r, _ := c.Report(now, []Entry{entry("a", uint64(39+i), true)})
		if i > 0 && len(r.Entries) != 1 {
			t.Errorf("report %v of period %d", r, c.period)
		}
		n, progress := c.Answered(now, newReceipt(uint64(40+i), r, []bool{true}), "text")
		if !progress || i > 0 && n.Roster != r.Roster() || c.Due() != now+RollEvery {
			t.Errorf("notice %v, progress %t, due %v", n, progress, c.Due()-now)
		}
	}
	c.Keep([]Entry{entry("b", 44, true)})
	if r, _ := c.Report(now, []Entry{entry("a", 44, true)}); len(r.Entries) != 2 {
		t.Errorf("what was kept is not reported: %v", r)
	}
	c.Refused(now)
	if c.Due() != now+firstPause {
		t.Errorf("refused: due after %v", c.Due()-now)
	}
	if c.Lead(now); c.Due() != now {
		t.Errorf("leads again: due after %v", c.Due()-now)
	}
}
