package coordinator

import (
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
)

// Status is what a hub reads of a coordinator's status.
type Status struct {
	Incarnation string `json:"incarnation"`
	Ready       bool   `json:"ready"`
	// Doubt is what hubs that follow and reach the cloud are asked; nil: nothing.
	Doubt     *contract.Doubt `json:"doubt"`
	Resources []Resource      `json:"resources"`
}

// Resource is what it says of one resource.
type Resource struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Ready    bool   `json:"ready"`
	Version  uint64 `json:"version"`
	History  uint64 `json:"history"`
	Feeder   string `json:"feeder"`
}

// Of is what the coordinator says of a resource, nil if nothing.
func (s *Status) Of(resource string) *Resource {
	for i := range s.Resources {
		if s.Resources[i].Resource == resource {
			return &s.Resources[i]
		}
	}
	return nil
}

// Has tells whether a coordinator reached the version of a relay.
func (s *Status) Has(resource string, want relay.Status) bool {
	r := s.Of(resource)
	return r != nil && want.Synced && r.Synced && r.History == want.History.Number && r.Version >= want.Version
}
