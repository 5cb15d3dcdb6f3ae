package digest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Bounds of what a Node says.
const (
	MaxHolding = 2 << 10
	maxKinds   = 16
)

// Soon is how long before the end of a certificate it is told that it ends.
const Soon = 30 * 24 * time.Hour

// Parts of a life after which a certificate should have a successor.
const (
	renewed = 0.85 // one that is renewed by itself, which happens at 70 to 80 % of its life
	byHand  = 0.5
)

// Holding is what a hub holds.
type Holding struct {
	// Trust is the number of the trust bundle that is valid here, and at the replica of the coordinator that the hub uses;
	// 0: none.
	Trust        uint64          `json:"trust,omitempty"`
	Certificates map[string]Life `json:"certificates,omitempty"` // by kind
}

// Life is from when to when a certificate is valid.
type Life struct {
	Begin  time.Time `json:"begin"`
	End    time.Time `json:"end"`
	Renews bool      `json:"renews,omitempty"` // by itself
}

// Late is from when on it is told that the certificate ends: Soon before its end, but not before it should have had a
// successor.
func (l Life) Late() time.Time {
	part := byHand
	if l.Renews {
		part = renewed
	}
	due, soon := l.Begin.Add(time.Duration(part*float64(l.End.Sub(l.Begin)))), l.End.Add(-Soon)
	if due.After(soon) {
		return due
	}
	return soon
}

// Text is what Parse reads; "": there is nothing to tell.
func (h Holding) Text() string {
	if h.Trust == 0 && len(h.Certificates) == 0 {
		return ""
	}
	text, err := json.Marshal(h) // keys are in order
	if err != nil {
		return ""
	}
	return string(text)
}

// ParseHolding reads what a Node says. Root of that node wrote it.
func ParseHolding(text string) (h Holding, err error) {
	if text == "" {
		return h, nil
	}
	if len(text) > MaxHolding {
		return h, fmt.Errorf("what the hub holds: %d bytes, want %d at most", len(text), MaxHolding)
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return Holding{}, fmt.Errorf("what the hub holds: %w", err)
	}
	if n := len(h.Certificates); n > maxKinds {
		return Holding{}, fmt.Errorf("what the hub holds: %d certificates, want %d at most", n, maxKinds)
	}
	for kind, l := range h.Certificates {
		if !l.Begin.Before(l.End) || l.Begin.Year() < 1970 || l.End.Year() > 9999 {
			return Holding{}, fmt.Errorf("what the hub holds: certificate %.20q from %s to %s, want a life", kind, l.Begin,
				l.End)
		}
	}
	return h, nil
}

// First is the certificate that ends first, "" if there is none.
func (h Holding) First() (kind string, end time.Time) {
	for k, l := range h.Certificates {
		if kind == "" || l.End.Before(end) || l.End.Equal(end) && k < kind {
			kind, end = k, l.End
		}
	}
	return kind, end
}

// Ending is the first certificate to end of those that end soon and have no successor, and when to look again; the zero
// time: never, unless something changes.
func (h Holding) Ending(now time.Time) (kind string, end, again time.Time) {
	kinds := make([]string, 0, len(h.Certificates))
	for k := range h.Certificates {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	sooner := func(t time.Time) {
		if t.After(now) && (again.IsZero() || t.Before(again)) {
			again = t
		}
	}
	for _, k := range kinds {
		l := h.Certificates[k]
		sooner(l.Late())
		sooner(l.End)
		if !now.Before(l.Late()) && (kind == "" || l.End.Before(end)) {
			kind, end = k, l.End
		}
	}
	return kind, end, again
}
