package digest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func usualReads() Reads {
	return Reads{
		Passed: []Passed{
			{"ciliumidentities.v2.cilium.io", 62_000_000}, {"services.v1.", 3_000_000}, {"runtimeclasses.v1.node.k8s.io", 512},
		},
		Rest: 4711, Unread: []string{"endpoints.v1.", "widgets.v1.example.com"},
	}
}

// TestReadsText: what is told of reads is read again, and takes few bytes whatever a node reads. What has no place is
// in the rest, or not told. docs/metrics.md has these two figures.
func TestReadsText(t *testing.T) {
	r := usualReads()
	if got, err := ParseReads(r.Text()); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%s: %+v, %v", r.Text(), got, err)
	}
	if n := len(r.Text()); n > 160 {
		t.Errorf("%d bytes: %s", n, r.Text())
	}
	if got, err := ParseReads(Reads{}.Text()); err != nil || !reflect.DeepEqual(got, Reads{}) {
		t.Errorf("nothing: %q, %+v, %v", Reads{}.Text(), got, err)
	}

	long := strings.Repeat("a", 30)
	var most Reads
	for i := range 40 {
		most.Passed = append(most.Passed, Passed{fmt.Sprintf("r%02d%s.v1alpha1.%[2]s.example.com", i, long), 1 << 40})
		most.Unread = append(most.Unread, fmt.Sprintf("u%02d.v1.", i))
	}
	most.Passed = append(most.Passed, Passed{strings.Repeat("x", MaxResource) + ".v1.", 5})
	got, err := ParseReads(most.Text())
	if n := len(most.Text()); n > MaxReads || err != nil || len(got.Passed) == 0 || len(got.Passed) > MaxPassed {
		t.Errorf("%d bytes, %v: %s", n, err, most.Text())
	}
	if told := int64(len(got.Passed)); got.Rest != (40-told)<<40+5 {
		t.Errorf("%d are told, and the rest is %d", told, got.Rest)
	}
	short := Reads{Passed: []Passed{{"a.v1.", math.MaxInt64}}, Rest: math.MaxInt64}
	for i := range 40 {
		short.Unread = append(short.Unread, fmt.Sprintf("u%02d.v1.", i))
	}
	got, err = ParseReads(short.Text())
	if err != nil || len(got.Unread) != MaxUnread || got.Rest != maxCount || got.Passed[0].Bytes != maxCount {
		t.Errorf("%s: %+v, %v", short.Text(), got, err)
	}
}

// TestParseReads: what a later hub appends is left alone, and what no hub would write is an error that says what is
// wrong, and gives nothing.
func TestParseReads(t *testing.T) {
	text := usualReads().Text()
	if got, err := ParseReads(text + " +more=7 +!x"); err != nil || !reflect.DeepEqual(got, usualReads()) {
		t.Errorf("%+v, %v", got, err)
	}
	many := func(form string, n int) string {
		text := "1 0"
		for i := range n {
			text += fmt.Sprintf(form, i)
		}
		return text
	}
	for bad, says := range map[string]string{
		"": "format", "1": "format", "2 0": "format", "{} 0": "format",
		"1 0" + strings.Repeat(" +", maxReadsRead): "at most",
		"1 x": "bytes", "1 -1": "bytes", "1 281474976710656": "bytes", "1 0 pods.v1.=": "bytes", "1 0 pods.v1.=-1": "bytes",
		"1 0 pods.v1.=1e9": "bytes", "1 0 pods.v1.=281474976710656": "bytes",
		"1 0 ": "want resource", "1 0 pods.v1.": "want resource", "1 0 !pods.v1.=3": "want resource",
		"1 0 pods=3": "resource", "1 0 pods.v1=3": "resource", "1 0 .v1.=3": "resource", "1 0 !..": "resource",
		"1 0 Pods.v1.=3": "resource", "1 0 pods.v1.a_b=3": "resource", "1 0 pods.v1.\x1b[31m=3": "resource",
		"1 0 !" + strings.Repeat("x", 60) + ".v1." + strings.Repeat("y", 60): "characters",
		"1 0 pods.v1.=3 pods.v1.=4": "twice", "1 0 pods.v1.=3 !pods.v1.": "twice",
		many(" r%d.v1.=1", MaxPassed+1): "at most", many(" !r%d.v1.", MaxUnread+1): "at most",
	} {
		if got, err := ParseReads(bad); err == nil || !strings.Contains(err.Error(), says) ||
			!reflect.DeepEqual(got, Reads{}) {
			t.Errorf("%.80q: %+v, %v: want an error about %s", bad, got, err, says)
		}
	}
}

// FuzzParseReads: whatever somebody writes, what is taken has its bounds, and is read again.
func FuzzParseReads(f *testing.F) {
	f.Add(usualReads().Text())
	f.Add("1 0")
	f.Add("1 5 a.v1.=1 !b.v1.c +d")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReads(text)
		if err != nil {
			if !reflect.DeepEqual(r, Reads{}) || len(err.Error()) > 400 {
				t.Fatalf("%q: %+v, %v", text, r, err)
			}
			return
		}
		all := int64(0)
		for _, p := range r.Passed {
			all += p.Bytes
		}
		again, err := ParseReads(r.Text())
		if err != nil || len(r.Text()) > MaxReads || len(again.Passed) > len(r.Passed) {
			t.Fatalf("%q: %+v, then %+v, %v", text, r, again, err)
		}
		told := again.Rest
		for _, p := range again.Passed {
			told += p.Bytes
		}
		if told != min(all+r.Rest, told) {
			t.Fatalf("%q: %d bytes, then %d", text, all+r.Rest, told)
		}
	})
}

// TestPrivate: nobody is advised to share what may be secret, or what a pool refuses.
func TestPrivate(t *testing.T) {
	for name, want := range map[string]bool{
		"secrets.v1.": true, "configmaps.v1.": true, "leases.v1.coordination.k8s.io": true, "events.v1.events.k8s.io": true,
		"events.v1.": true, "tokenreviews.v1.authentication.k8s.io": true, "externalsecrets.v1.external-secrets.io": true,
		"oauthaccesstokens.v1.oauth.openshift.io": true, "logincredentials.v1.example.com": true,
		"services.v1.": false, "ciliumidentities.v2.cilium.io": false, "felixconfigurations.v1.crd.projectcalico.org": false,
		"configmaps.v1.example.com": false,
	} {
		resource, _, group, err := Split(name)
		if err != nil || Private(resource, group) != want {
			t.Errorf("%s: private is %t, %v", name, !want, err)
		}
	}
}

// TestReadsRhythm: reads are told after a minute, four times a day when nothing changes, and each hour at most whatever
// happens. Bytes alone are no change.
func TestReadsRhythm(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(now time.Duration) Reads
		want int
	}{
		"nothing is read": {func(time.Duration) Reads { return Reads{} }, 4},
		"nothing happens": {func(time.Duration) Reads { return usualReads() }, 4},
		"bytes grow": {func(now time.Duration) Reads {
			r := usualReads()
			r.Passed[2].Bytes, r.Rest = int64(now), int64(now)
			r.Order()
			return r
		}, 4},
		"another one each time": {func(now time.Duration) Reads {
			return Reads{Unread: []string{fmt.Sprintf("r%d.v1.", now/time.Second)}}
		}, 24},
	} {
		var r ReadsRhythm
		var at []time.Duration
		for now := time.Duration(0); now < 24*time.Hour; now += heartbeat {
			if is := c.of(now); r.Due(now, is) {
				r.Told(now, is)
				at = append(at, now)
			}
		}
		if len(at) != c.want || at[0] != ReadsFirst {
			t.Errorf("%s: told at %v, want %d times", name, at, c.want)
		}
	}
	var r ReadsRhythm
	r.Told(0, usualReads())
	for change, do := range map[string]func(*Reads){
		"one more": func(r *Reads) { r.Passed = append(r.Passed, Passed{"nodes.v1.", 1}) },
		"one less": func(r *Reads) { r.Passed = r.Passed[1:] },
		"read now": func(r *Reads) { r.Unread = r.Unread[1:] },
		"shared now, and unread": func(r *Reads) {
			r.Passed, r.Unread = r.Passed[:2], append(slices.Clone(r.Unread), "runtimeclasses.v1.node.k8s.io")
		},
	} {
		is := usualReads()
		do(&is)
		if r.Due(ReadsSoonest-1, is) || !r.Due(ReadsSoonest, is) {
			t.Errorf("%s: want it told after %v", change, ReadsSoonest)
		}
	}
}
