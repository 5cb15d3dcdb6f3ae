package member

import (
	"net/http"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// TestRefused: a hub leads in vain if the cloud gives it nothing of what the pool shares, and only then.
func TestRefused(t *testing.T) {
	given := Relay{From: role.Cloud}
	denied := Relay{From: role.Cloud, Status: relay.Status{Denied: "403"}, Code: http.StatusForbidden}
	unknown, ofPool, joins := denied, denied, given
	unknown.Code, ofPool.From, joins.Joins = http.StatusNotFound, role.Coordinator, true
	for name, c := range map[string]struct {
		relays []Relay
		want   bool
	}{
		"nothing is shared":     {nil, false},
		"all":                   {[]Relay{denied, denied}, true},
		"some":                  {[]Relay{denied, given}, false},
		"all but what joins":    {[]Relay{denied, joins}, true},
		"what nobody has":       {[]Relay{denied, unknown}, false},
		"what the pool refuses": {[]Relay{ofPool}, false},
	} {
		if got := refused(c.relays); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
