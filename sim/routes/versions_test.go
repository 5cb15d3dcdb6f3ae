package routes_test

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/routes"
)

// TestVersions: what a client may be shown while addresses are corrected, and what not.
func TestVersions(t *testing.T) {
	seen := func(texts ...string) routes.Client { // "version address", or "" if the slice is gone
		c := routes.Client{Node: "b", Kind: routes.Informs}
		for _, text := range texts {
			x := routes.Shown{At: begin, Slice: "one"}
			if version, address, ok := strings.Cut(text, " "); ok {
				x.Version, x.Pods = version, map[string][]routes.Endpoint{pod: {{Address: address, Ready: true}}}
			}
			c.Shown = append(c.Shown, x)
		}
		return c
	}
	cloud := seen("100 "+old, "103 "+old, "108 "+here)
	for name, c := range map[string]struct {
		client routes.Client
		want   string // part of the one line; empty: nothing is wrong
	}{
		"the cloud's":                   {seen("100 "+old, "103 "+old, "108 "+here), ""},
		"corrected":                     {seen("103 "+old, "97 "+here, "108 "+here), ""},
		"not corrected any more":        {seen("103 "+old, "97 "+here, "103 "+old), ""},
		"as the original":               {seen("103 "+old, "103 "+here, "108 "+here), "at the cloud's version 103"},
		"later than all":                {seen("103 "+old, "109 "+here), "never got to version 109"},
		"back to the cloud's older one": {seen("103 "+old, "97 "+here, "100 "+old), "version 100 comes after 103"},
		"deleted, and of another relay": {seen("103 "+old, "", "100 "+old), ""},
		"an older one, corrected first": {seen("97 "+here, "100 "+old, "103 "+old), ""},
	} {
		got := routes.Versions(cloud, []routes.Client{c.client})
		if (len(got) > 0) != (c.want != "") || len(got) > 1 || len(got) == 1 && !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
