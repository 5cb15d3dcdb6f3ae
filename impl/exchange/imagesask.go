package exchange

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// Bounds of what a hub brings.
const (
	MaxHolds     = 2000 // digests of one member
	MaxPulls     = 64
	maxFailed    = 16
	MaxTags      = 1000
	maxTag       = 512       // bytes of a reference
	maxImagesAsk = 384 << 10 // bytes of a request: all of these at once
)

// ImagesAsk is what a hub brings, and what it wants.
type ImagesAsk struct {
	Desk    string `json:"desk,omitempty"`    // that knows what the hub holds; another one asks for all of it
	Address string `json:"address,omitempty"` // at which members read from the hub; "": they cannot

	Whole bool     `json:"whole,omitempty"` // Holds is all that the hub holds
	Holds []Digest `json:"holds,omitempty"` // that came
	Gone  []Digest `json:"gone,omitempty"`  // and that went, and pulls that ended

	Pulls  []PullProgress `json:"pulls,omitempty"`  // those that are under way
	Want   *Digest        `json:"want,omitempty"`   // who has it, or may the hub pull it?
	Failed []ReadReport   `json:"failed,omitempty"` // of those that the hub could not read from

	Tag      string       `json:"tag,omitempty"`      // what does it lead to, or may the hub ask the registry?
	Resolved []Resolution `json:"resolved,omitempty"` // what registries said of tags to the hub's own containerd
}

// PullProgress is how far a pull is.
type PullProgress struct {
	Digest Digest `json:"digest"`
	Bytes  int64  `json:"bytes"`
}

// ReadReport is about a member from which a hub read.
type ReadReport struct {
	Digest Digest        `json:"digest"`
	Node   string        `json:"node"`
	Wrong  bool          `json:"wrong,omitempty"` // it served other bytes; else it served none, or not all
	Age    time.Duration `json:"age,omitempty"`   // since the hub began to read
}

// Resolution is what a registry said of a tag.
type Resolution struct {
	Tag    string        `json:"tag"` // registry/name:tag
	Digest Digest        `json:"digest"`
	Age    time.Duration `json:"age,omitempty"` // since the registry was asked

	// Witnesses, in an answer, are members that say so. Fewer than TagWitnesses: nobody else does.
	Witnesses int `json:"witnesses,omitempty"`
}

// ImagesAnswer is what Images knows.
type ImagesAnswer struct {
	Desk  string `json:"desk"`
	Known bool   `json:"known,omitempty"` // it has what the hub holds

	Pull bool     `json:"pull,omitempty"` // of Want: the hub is to pull it
	From []Holder `json:"from,omitempty"` // of Want: who has it, the best first

	Resolution *Resolution `json:"resolution,omitempty"` // of Tag: the last one that is known
	Resolving  bool        `json:"resolving,omitempty"`  // of Tag: other hubs ask the registry just now

	Barred []string `json:"barred,omitempty"` // members that are not listened to about tags: they were contradicted
}

// Holder is a member that has content, or is pulling it.
type Holder struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	Growing bool   `json:"growing,omitempty"` // it is pulling
}

// Check refuses what is beyond the bounds.
func (a *ImagesAsk) Check() error {
	for _, part := range []struct {
		name      string
		len, most int
	}{
		{"holds", len(a.Holds), MaxHolds},
		{"gone", len(a.Gone), MaxHolds},
		{"pulls", len(a.Pulls), MaxPulls},
		{"failed", len(a.Failed), maxFailed},
		{"resolved", len(a.Resolved), MaxTags},
	} {
		if part.len > part.most {
			return fmt.Errorf("%s: %d, want %d at most", part.name, part.len, part.most)
		}
	}
	if a.Address != "" {
		if _, reverse, err := contract.ParsePoolAddress(a.Address); err != nil || reverse {
			return fmt.Errorf("address %.80q: want the IP address of a node and a port", a.Address)
		}
	}
	for _, p := range a.Pulls {
		if p.Bytes < 0 {
			return fmt.Errorf("pulls: %v: %d bytes, want 0 at least", p.Digest, p.Bytes)
		}
	}
	for _, r := range a.Failed {
		if r.Age < 0 {
			return fmt.Errorf("failed: %v: age %v, want 0 at least", r.Digest, r.Age)
		}
	}
	if a.Tag != "" {
		if err := CheckTag(a.Tag); err != nil {
			return fmt.Errorf("tag: %w", err)
		}
	}
	for _, r := range a.Resolved {
		if err := CheckTag(r.Tag); err != nil {
			return fmt.Errorf("resolved: %w", err)
		}
		if r.Age < 0 {
			return fmt.Errorf("resolved: %.80q: age %v, want 0 at least", r.Tag, r.Age)
		}
	}
	return nil
}

// CheckTag refuses what is no reference with a registry and a tag. Package images reads names more strictly.
func CheckTag(s string) error {
	registry, rest, ok := strings.Cut(s, "/")
	colon := strings.LastIndexByte(rest, ':')
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
	if !ok || registry == "" || colon < 1 || colon == len(rest)-1 || len(s) > maxTag || !plain {
		return fmt.Errorf("%.80q: want registry/name:tag, %d bytes at most", s, maxTag)
	}
	return nil
}
