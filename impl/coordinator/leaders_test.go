package coordinator_test

import (
	"net/http"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
)

// TestLeadersOnly: where leaders are limited, a hub takes the election Lease only by a certificate that says that it
// may lead. It reads as all do, and its word about a leader counts.
func TestLeadersOnly(t *testing.T) {
	p := newPool(t)
	p.config.LeadersOnly = true
	s := p.start()
	any := s.hub("any")
	chosen := s.as(contract.NodeUserPrefix+"chosen", contract.HubGroup, contract.PoolGroupPrefix+"p", contract.LeaderGroup)
	foreign := s.as(contract.NodeUserPrefix+"foreign", contract.HubGroup, contract.PoolGroupPrefix+"q",
		contract.LeaderGroup)
	none := s.as("somebody", contract.PoolGroupPrefix+"p", contract.LeaderGroup)
	for _, c := range []struct {
		name   string
		by     *caller
		holder string
		code   int
	}{
		{"any hub", any, "any_1", http.StatusForbidden},
		{"a leader of another pool", foreign, "foreign_1", http.StatusForbidden},
		{"who is no hub", none, "somebody_1", http.StatusForbidden},
		{"a leader, for another node", chosen, "any_1", http.StatusForbidden},
		{"a leader", chosen, "chosen_1", http.StatusCreated},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, answer, err := c.by.do(http.MethodPost, leasesPath, leaseOf(`"name":"yurthub"`, c.holder, 15))
			if err != nil || code != c.code {
				t.Errorf("%d %s, %v; want %d", code, answer, err, c.code)
			}
		})
	}
	any.want(http.StatusOK, http.MethodGet, contract.StatusPath, "")
}
