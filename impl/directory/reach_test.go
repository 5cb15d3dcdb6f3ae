package directory

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
)

// reached is the object with what the gate may reach.
func reached(text string) *corev1.Endpoints {
	return object(func(o *corev1.Endpoints) { o.Annotations[contract.LeaderHubReach] = text })
}

// machines are networks of one address each, with one port.
func machines(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.0.%d.%d/32:%d", i/256, i%256, 1+i))
	}
	return strings.Join(all, ",")
}

// TestReach: what the object names comes to hubs in order, signed.
func TestReach(t *testing.T) {
	p := newPool()
	for text, want := range map[string]string{
		"":                                  "",
		" ":                                 "",
		"10.0.9.7/32":                       "10.0.9.7/32",
		"10.244.0.0/16:8000-8100":           "10.244.0.0/16:8000-8100",
		"fd00:1::/64:8080, 10.0.0.0/8:443":  "10.0.0.0/8:443,fd00:1::/64:8080",
		"10.0.0.0/8:9,10.0.0.0/8:1-8":       "10.0.0.0/8:1-8,10.0.0.0/8:9",
		"10.1.0.0/16,10.0.0.0/8,10.0.0.0/9": "10.0.0.0/8,10.0.0.0/9,10.1.0.0/16",
		machines(MaxReach):                  machines(MaxReach),
		"0.0.0.0/0:80,::/0:80,127.0.0.0/8":  "0.0.0.0/0:80,127.0.0.0/8,::/0:80", // the leader refuses what nobody dials
	} {
		e, err := Parse("harbour", reached(text), 42)
		var is []string
		for _, s := range e.Reach {
			is = append(is, s.String())
		}
		if err != nil || strings.Join(is, ",") != want {
			t.Errorf("%.80q: %.300q, %v", text, is, err)
			continue
		}
		line := must(e.Sign(p.authorities[0]))
		if again, by, err := Open(line, "harbour", p.trusted()); err != nil || by == nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%.80q: opened as %+v, %v", text, again, err)
		}
	}
	const signed = `"reach":["10.244.0.0/16:8000-8100","fd00:1::/64"]}`
	e := must(Parse("harbour", reached("fd00:1::/64,10.244.0.0/16:8000-8100"), 42))
	if text := string(must(json.Marshal(e))); !strings.HasSuffix(text, signed) {
		t.Errorf("%s, want %s", text, signed)
	}
}

// TestReachRefused: what is no network with its ports, and what has a second form, is refused, and names the field.
func TestReachRefused(t *testing.T) {
	for about, test := range map[string]struct{ text, want string }{
		"a name":       {"edge-1", `weir.dev/reach: "edge-1": want a network and its ports`},
		"an address":   {"10.0.0.7", `"10.0.0.7": want a network`},
		"its port":     {"10.0.0.7:8080", "want a network"},
		"an empty one": {"10.0.0.0/8,", `weir.dev/reach: "": want a network`},
		"ports alone":  {"8000-8100", "want a network"},
		"a zone":       {"fe80::%eth0/64", "want a network"},
		"in a network": {"10.244.3.4/16", "want 10.244.0.0/16, the address of the network"},
		"IPv4 in IPv6": {"::ffff:10.0.0.0/104", "want a network as in 10.244.0.0/16"},
		"port 0":       {"10.0.0.0/8:0", "want the first one above 0"},
		"a large port": {"10.0.0.0/8:65536", "want a network and its ports"},
		"back":         {"10.0.0.0/8:9-8", "the last one not before it"},
		"another form": {"10.0.0.0/8:1-65535", "want it as 10.0.0.0/8"},
		"large":        {"FD00::/8", "want it as fd00::/8"},
		"twice":        {"10.0.0.0/8:8080,10.0.0.0/8:8080", "has 10.0.0.0/8:8080 and 10.0.0.0/8:8080, want each port of"},
		"overlapping":  {"10.0.0.0/8:1-9,10.0.0.0/8:9-10", "has 10.0.0.0/8:1-9 and 10.0.0.0/8:9-10, want each"},
		"all and one":  {"10.0.0.0/8,10.0.0.0/8:9", "want each port of a network once"},
		"many":         {machines(MaxReach + 1), "weir.dev/reach has 129 networks and ports, want 128 at most"},
		"long":         {strings.Repeat("10.0.0.0/8,", 2000), "weir.dev/reach has 22000 bytes, want 16384 at most"},
	} {
		_, err := Parse("harbour", reached(test.text), 42)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "weir.dev/reach") ||
			strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
			t.Errorf("%s: %v, want %s", about, err, test.want)
		}
		if about == "long" {
			continue
		}
		text := must(json.Marshal(struct {
			Pool    string   `json:"pool"`
			Version int      `json:"version"`
			Reach   []string `json:"reach"`
		}{"harbour", 42, strings.Split(test.text, ",")}))
		if e, err := decode("harbour", text); err == nil {
			t.Errorf("%s: a hub takes it: %v", about, e.Reach)
		}
	}
	one := func(network string, first, last uint16) reverse.Span {
		return reverse.Span{Prefix: netip.MustParsePrefix(network), First: first, Last: last}
	}
	for about, reach := range map[string]Reach{
		"nothing": {{}}, "in a network": {one("10.0.0.1/8", 1, 2)}, "port 0": {one("10.0.0.0/8", 0, 2)},
		"out of order": {one("10.0.0.0/8", 9, 9), one("10.0.0.0/8", 1, 1)},
		"IPv6 first":   {one("fd00::/8", 1, 1), one("10.0.0.0/8", 1, 1)},
		"twice":        {one("10.0.0.0/8", 1, 1), one("10.0.0.0/8", 1, 1)},
		"overlapping":  {one("10.0.0.0/8", 1, 65535), one("10.0.0.0/8", 443, 443)},
		"many":         slices.Repeat(Reach{one("10.0.0.0/8", 1, 1)}, MaxReach+1),
	} {
		e := entry(42, "a:1")
		e.Reach = reach
		if _, err := e.Sign(newPool().authorities[0]); err == nil || !strings.Contains(err.Error(), "weir.dev/reach") {
			t.Errorf("%s: it is signed, or the error does not say why: %v", about, err)
		}
	}
	const behind = `{"pool":"harbour","version":1,"reach":["fd00::/8","10.0.0.0/8"]}`
	if e, err := decode("harbour", []byte(behind)); err == nil {
		t.Errorf("out of order: %+v", e)
	}
}

// TestReachComesAndGoes: a hub follows what is told, through a restart too, shows it, and does not keep what is told no
// more.
func TestReachComesAndGoes(t *testing.T) {
	p, file := newPool(), t.TempDir()+"/directory"
	d := p.holder(file, io.Discard)
	for i, want := range []string{"", "10.244.0.0/16:8080", "10.0.9.7/32,10.244.0.0/16:8000-8100", ""} {
		e := must(Parse("harbour", reached(want), uint64(5+i)))
		if _, err := d.TakeOfCloud(must(e.Sign(p.authorities[0]))); err != nil {
			t.Fatal(err)
		}
		for about, now := range map[string]*Directory{"told": d, "after a restart": p.holder(file, io.Discard)} {
			if is := strings.Join(now.Status().Reach, ","); is != want || !reflect.DeepEqual(now.Now().Reach, e.Reach) {
				t.Errorf("%d, %s: %v, status %q, want %q", i, about, now.Now().Reach, is, want)
			}
		}
	}
}
