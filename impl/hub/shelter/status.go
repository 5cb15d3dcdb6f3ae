package shelter

import (
	"time"
)

// Status is what is kept for the time without the cloud.
type Status struct {
	Away        bool      `json:"away"`        // reads are answered from the store
	Watches     int       `json:"watches"`     // open at the cloud, and recorded
	Collections int       `json:"collections"` // that clients asked for
	Complete    int       `json:"complete"`    // of them, those that can be served
	Bytes       int64     `json:"bytes"`
	FreshAt     time.Time `json:"freshAt,omitzero"` // when the cloud was last reached
	Queued      int       `json:"queued"`           // writes that wait for the cloud
	LastError   string    `json:"lastError,omitempty"`
}

// Status tells what is kept.
func (s *Shelter) Status() *Status {
	away, _ := s.link.State()
	st := s.Store.Stats()
	return &Status{
		Away: away, Watches: st.Watched, Collections: st.Collections, Complete: st.Complete, Bytes: st.FileBytes,
		FreshAt: st.FreshAt,
		Queued:  s.Store.Queue().Len(), LastError: st.LastError,
	}
}
