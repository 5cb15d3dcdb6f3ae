package heartbeat

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Bounds of a report.
const (
	MaxRoll     = 500
	MaxRollText = 32 << 10
	MaxBehind   = 3 // periods by number: more than a receipt takes to come round
)

// Entry is one node in a report.
type Entry struct {
	Node    string `json:"node"`
	Period  uint64 `json:"period,omitempty"` // of the link
	Link    Link   `json:"link"`
	Reaches bool   `json:"reaches,omitempty"` // the hub reaches the cloud by itself
}

// Check reports what is wrong with an entry.
func (e Entry) Check() error {
	if e.Period == 0 {
		return errors.New("period: 0: want the number of one that weir-manager has opened")
	}
	if len(e.Node) > validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(e.Node)) > 0 {
		return fmt.Errorf("node: %.80q: want the name of a node", e.Node)
	}
	return nil
}

// Report says which nodes of a pool were heard.
type Report struct {
	Period  uint64  // the newest that the leader knows; 0: it knows none
	Entries []Entry // by name, one for each; none of a later period
}

// What stands between the names of a roster. No name of a node has any of these.
const (
	shares = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" // how many bytes the name shares with the one before
	flags  = "_~!*+,;"                    // after it, unless it is a node that reaches the cloud, of the report's period
)

// Roster is the report without links: period and names, each name by what it does not share with the one before.
func (r Report) Roster() string {
	text, before := []byte(strconv.FormatUint(r.Period, 36)+" "), ""
	for _, e := range r.Entries {
		n := 0
		for n < min(len(e.Node), len(before), len(shares)-1) && e.Node[n] == before[n] {
			n++
		}
		text = append(text, shares[n])
		flag := 2 * (r.Period - e.Period)
		if !e.Reaches {
			flag++
		}
		if flag > 0 {
			text = append(text, flags[flag-1])
		}
		text, before = append(text, e.Node[n:]...), e.Node
	}
	return string(text)
}

// String is the report as a Lease carries it.
func (r Report) String() string {
	links := make([]byte, 0, len(r.Entries)*len(Link{}))
	for _, e := range r.Entries {
		links = append(links, e.Link[:]...)
	}
	return r.Roster() + " " + base64.RawURLEncoding.EncodeToString(links)
}

// NewReport makes the report of a period: those entries that are not too old, and no more than there may be. left are
// those that were left out for lack of room.
func NewReport(period uint64, entries []Entry) (r Report, left int) {
	r.Period = period
	for _, e := range entries {
		if e.Period <= period && period-e.Period <= MaxBehind && e.Check() == nil {
			r.Entries = append(r.Entries, e)
		}
	}
	slices.SortFunc(r.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(b.Period, a.Period))
	})
	r.Entries = slices.CompactFunc(r.Entries, func(a, b Entry) bool { return a.Node == b.Node })
	all := len(r.Entries)
	r.Entries = r.Entries[:min(all, MaxRoll)]
	for len(r.String()) > MaxRollText {
		r.Entries = r.Entries[:len(r.Entries)*9/10]
	}
	return r, all - len(r.Entries)
}

// ParseRoster reads a roster: a report whose links are all zero.
func ParseRoster(text string) (r Report, err error) {
	fail := func(field string, err error) (Report, error) {
		return Report{}, fmt.Errorf("roster: %s: %w", field, err)
	}
	if len(text) > MaxRollText {
		return fail("length", fmt.Errorf("%d bytes, want %d at most", len(text), MaxRollText))
	}
	period, names, ok := strings.Cut(text, " ")
	if !ok {
		return fail("names", errors.New("there are none: want a blank after the period"))
	}
	if r.Period, err = parsePeriod(period); err != nil {
		return fail("period", err)
	}
	for before := ""; names != ""; {
		if len(r.Entries) == MaxRoll {
			return fail("names", fmt.Errorf("more than %d", MaxRoll))
		}
		n := strings.IndexByte(shares, names[0])
		if n < 0 || n > len(before) {
			return fail("names", fmt.Errorf("after %q: %q: want one of %s, and as much of that name", before, names[:1], shares))
		}
		end := strings.IndexAny(names[1:], shares) + 1
		if end == 0 {
			end = len(names)
		}
		own, flag := names[1:end], 0
		if own != "" {
			if flag = strings.IndexByte(flags, own[0]) + 1; flag > 0 {
				own = own[1:]
			}
		}
		names = names[end:]
		e := Entry{Node: before[:n] + own, Period: r.Period - uint64(flag/2), Reaches: flag%2 == 0}
		if e.Period > r.Period {
			return fail("period", fmt.Errorf("of %.80q: before the first", e.Node))
		}
		if err := e.Check(); err != nil {
			return fail("entry", err)
		}
		if e.Node <= before {
			return fail("names", fmt.Errorf("%q after %q: want each once, by name", e.Node, before))
		}
		r.Entries, before = append(r.Entries, e), e.Node
	}
	if r.Roster() != text {
		return fail("names", errors.New("a name does not share all that it can with the one before"))
	}
	return r, nil
}

// ParseReport reads a report.
func ParseReport(text string) (r Report, err error) {
	fail := func(field string, err error) (Report, error) {
		return Report{}, fmt.Errorf("report: %s: %w", field, err)
	}
	if len(text) > MaxRollText {
		return fail("length", fmt.Errorf("%d bytes, want %d at most", len(text), MaxRollText))
	}
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return fail("links", errors.New("there are none: want period, names and links, with blanks between"))
	}
	if r, err = ParseRoster(text[:at]); err != nil {
		return Report{}, fmt.Errorf("report: %w", err)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text[at+1:])
	if err != nil {
		return fail("links", err)
	}
	if want := len(r.Entries) * len(Link{}); len(raw) != want {
		return fail("links", fmt.Errorf("%d bytes, want %d for %d names", len(raw), want, len(r.Entries)))
	}
	for i := range r.Entries {
		r.Entries[i].Link = Link(raw[i*len(Link{}):])
	}
	return r, nil
}

// sumOf binds a receipt to a roster.
func sumOf(roster string) Link {
	sum := sha256.Sum256([]byte("weir roster " + roster))
	return Link(sum[:])
}
