package reverse

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func testSpan(network string, first, last uint16) Span {
	return Span{netip.MustParsePrefix(network), first, last}
}

// TestSpan: a span that means nothing, or not what it seems to, is an error.
func TestSpan(t *testing.T) {
	for _, c := range []struct {
		s    Span
		want string
	}{
		{testSpan("10.0.0.0/8", 1, 1), ""},
		{testSpan("fd00::/8", 1, 65535), ""},
		{Span{}, "want a network"},
		{testSpan("::ffff:10.0.0.0/104", 1, 1), "want a network"},
		{testSpan("10.1.0.0/8", 1, 1), "want 10.0.0.0/8"},
		{testSpan("10.0.0.0/8", 0, 1), "above 0"},
		{testSpan("10.0.0.0/8", 2, 1), "not before"},
	} {
		if err := c.s.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.s, err, c.want)
		}
		if _, err := c.s.MarshalText(); (err == nil) != (c.want == "") {
			t.Errorf("%v as text: %v, want %q", c.s, err, c.want)
		}
	}
}

// TestHas: both ends of the ports are in a span, and nothing is in one that is invalid.
func TestHas(t *testing.T) {
	for _, c := range []struct {
		s       Span
		address string
		want    bool
	}{
		{testSpan("10.244.0.0/16", 8000, 8100), "10.244.0.0:8000", true},
		{testSpan("10.244.0.0/16", 8000, 8100), "10.244.255.255:8100", true},
		{testSpan("10.244.0.0/16", 8000, 8100), "10.244.0.1:7999", false},
		{testSpan("10.244.0.0/16", 8000, 8100), "10.244.0.1:8101", false},
		{testSpan("10.244.0.0/16", 8000, 8100), "10.245.0.0:8000", false},
		{testSpan("10.244.0.0/16", 8000, 8100), "[::ffff:10.244.0.1]:8000", false},
		{AllPorts(netip.MustParsePrefix("fd00::/64")), "[fd00::7]:1", true},
		{AllPorts(netip.MustParsePrefix("fd00::/64")), "[fd00::7]:65535", true},
		{AllPorts(netip.MustParsePrefix("fd00::/64")), "[fd00::7]:0", false},
		{AllPorts(netip.MustParsePrefix("fd00::/64")), "[fd00:0:0:1::]:1", false},
		{testSpan("10.244.0.1/16", 1, 9), "10.244.0.1:1", false},
		{testSpan("10.244.0.0/16", 0, 9), "10.244.0.1:1", false},
		{Span{}, "10.244.0.1:1", false},
	} {
		if is := c.s.Has(netip.MustParseAddrPort(c.address)); is != c.want {
			t.Errorf("%s has %s: %v", c.s, c.address, is)
		}
	}
	if (testSpan("0.0.0.0/0", 1, 2)).Has(netip.AddrPort{}) {
		t.Error("no address is in a span")
	}
}

// TestParse: each span has one text.
func TestParse(t *testing.T) {
	for text, want := range map[string]Span{
		"10.0.9.7/32":                        testSpan("10.0.9.7/32", 1, 65535),
		"0.0.0.0/0:1-2":                      testSpan("0.0.0.0/0", 1, 2),
		"10.244.0.0/16:8000-8100":            testSpan("10.244.0.0/16", 8000, 8100),
		"10.244.0.0/16:8080":                 testSpan("10.244.0.0/16", 8080, 8080),
		"fd00:1::/64:65535":                  testSpan("fd00:1::/64", 65535, 65535),
		"fd00:1::/64":                        testSpan("fd00:1::/64", 1, 65535),
		"fd00:1:2:3:4:5:6:7/128:10000-20000": testSpan("fd00:1:2:3:4:5:6:7/128", 10000, 20000),
	} {
		got, err := ParseSpan(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		line, err := json.Marshal([]Span{got})
		var again []Span
		if err != nil || json.Unmarshal(line, &again) != nil || !slices.Equal(again, []Span{want}) {
			t.Errorf("%s as JSON: %s, %v", text, line, err)
		}
	}
	const form = "want a network and its ports"
	for text, want := range map[string]string{
		"": form, "10.244.0.0": form, "10.244.0.0:8080": form, "10.244.0.0/33": form, "/16": form, "edge-1/32": form,
		"10.244.0.0/16/17": form, "10.244.0.0/016": form, "010.244.0.0/16": form, "10.244/16": form, "10.0.0.0 /8": form,
		"fe80::%eth0/64": form, "10.244.0.0/16:": form, "10.244.0.0/16:http": form, "10.244.0.0/16:-": form,
		"10.244.0.0/16:1-": form, "10.244.0.0/16:-1": form, "10.244.0.0/16:65536": form, "10.244.0.0/16:1-65536": form,
		"10.244.0.0/16:1-2-3": form, "10.244.0.0/16:1:2": form, "10.244.0.0/16:+1": form, "10.244.0.0/16:1_0": form,
		"10.244.0.0/16,10.245.0.0/16": form, "[fd00::]/64": form,
		"10.244.0.1/16":         "want 10.244.0.0/16, the address of the network",
		"::ffff:10.0.0.0/104":   "want a network as in",
		"::ffff:10.0.0.0/104:1": "want a network as in",
		"10.244.0.0/16:0":       "the first one above 0",
		"10.244.0.0/16:2-1":     "the last one not before it",
		"10.244.0.0/16:08":      "want it as 10.244.0.0/16:8", "10.244.0.0/16:8-8": "want it as 10.244.0.0/16:8",
		"10.244.0.0/16:1-65535": "want it as 10.244.0.0/16", "FD00::/64": "want it as fd00::/64",
		"fd00:0::/64": "want it as fd00::/64", strings.Repeat("1", 1000): form,
	} {
		got, err := ParseSpan(text)
		if err == nil || !strings.Contains(err.Error(), want) || got != (Span{}) || len(err.Error()) > 300 {
			t.Errorf("%.80q: %v, %v, want %s", text, got, err, want)
		}
		var all []Span
		if line, _ := json.Marshal([]string{text}); json.Unmarshal(line, &all) == nil {
			t.Errorf("%.80q is taken as JSON: %v", text, all)
		}
	}
}

// TestMerged: ports of one network are merged where they touch, and networks are not.
func TestMerged(t *testing.T) {
	for _, c := range []struct{ spans, want string }{
		{"", ""},
		{"10.0.0.0/8:1", "10.0.0.0/8:1"},
		{"10.0.0.0/8:1 10.0.0.0/8:1", "10.0.0.0/8:1"},
		{"10.0.0.0/8:3 10.0.0.0/8:1", "10.0.0.0/8:1 10.0.0.0/8:3"},
		{"10.0.0.0/8:2 10.0.0.0/8:1", "10.0.0.0/8:1-2"},
		{"10.0.0.0/8:5-9 10.0.0.0/8:1-20 10.0.0.0/8:7", "10.0.0.0/8:1-20"},
		{"10.0.0.0/8:9-20 10.0.0.0/8:1-9", "10.0.0.0/8:1-20"},
		{"10.0.0.0/8 10.0.0.0/8:65535", "10.0.0.0/8"},
		{"fd00::/8 10.0.0.0/9 10.0.0.0/8", "10.0.0.0/8 10.0.0.0/9 fd00::/8"},
	} {
		var all []Span
		for f := range strings.FieldsSeq(c.spans) {
			s, err := ParseSpan(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		before := slices.Clone(all)
		var got []string
		for _, s := range MergedSpans(all) {
			got = append(got, s.String())
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.spans, text, c.want)
		}
		if !slices.Equal(all, before) {
			t.Errorf("%s: it is %v now", c.spans, all)
		}
	}
}

// FuzzParse: what is read is valid, and is written as it was.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"10.244.0.0/16:8000-8100", "fd00:1::/64:8080", "10.0.9.7/32", "::/0", "::ffff:10.0.0.0/104", "1.2.3.4/8:1-1", "/:",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpan(text)
		if err != nil {
			if s != (Span{}) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v, %v", text, s, err)
			}
			return
		}
		if s.Validate() != nil || s.String() != text || !s.Has(netip.AddrPortFrom(s.Prefix.Addr(), s.First)) ||
			!s.Has(netip.AddrPortFrom(s.Prefix.Addr(), s.Last)) {
			t.Errorf("%q: %v", text, s)
		}
	})
}
