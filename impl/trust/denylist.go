package trust

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// Bounds.
const (
	MaxDenials      = 1024
	MaxDenylists    = 4       // that one holds, the newest and those with entries that it lacks
	MaxDenylistText = 1 << 20 // of all lists that one holds
	MaxHosts        = 32      // of an entry
	MaxKeys         = 32      // likewise
	maxList         = MaxDenylistText / MaxDenylists
	room            = maxList - 1<<10 // of it, for entries
)

// denylistForm is how lists are signed.
var denylistForm = bulletin.Form{Subject: "denylist", Field: "list", Max: maxList}

// DenialLasts is how long an entry is valid: the longest life of a certificate, and as much again for those who were
// away when it ended.
func DenialLasts() time.Duration { return pki.Lasts() }

// Denial refuses the certificates of a node that began until a time.
type Denial struct {
	Node    string    `json:"node"`
	UID     string    `json:"uid,omitempty"`     // of the Node, for people
	Deleted bool      `json:"deleted,omitempty"` // the Node was; else it left the pool
	Replica string    `json:"replica,omitempty"` // of the pool's coordinator, if one ran there
	Hosts   []string  `json:"hosts,omitempty"`   // of that replica, and of no other one
	Keys    []string  `json:"keys,omitempty"`    // of its certificates as a coordinator, by KeyOf
	Before  time.Time `json:"before"`            // whole seconds
}

// End is when the entry is no longer valid.
func (e Denial) End() time.Time { return e.Before.Add(DenialLasts()) }

// commonNames are those by which certificates name the holder alone.
func (e Denial) commonNames(pool string) []string {
	names := []string{contract.NodeUserPrefix + e.Node, contract.HubUserPrefix + pool + ":" + e.Node}
	if e.Replica != "" {
		names = append(names, contract.ReplicaUser(pool, e.Replica))
	}
	return names
}

// serves reports whether the coordinator of some addresses and keys is the one on the node: its common name is that of
// all.
func (e Denial) serves(hosts, keys []string) bool {
	in := func(all []string) func(string) bool { return func(s string) bool { return slices.Contains(all, s) } }
	return e.Replica != "" && slices.ContainsFunc(hosts, in(e.Hosts)) || slices.ContainsFunc(keys, in(e.Keys))
}

// KeyOf names a public key in a Denial.
func KeyOf(public crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil { // of a type that no certificate of Weir has
		return ""
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:16])
}

// sound is the entry as a list may have it. What it has too much of goes.
func (e Denial) sound() Denial {
	e.Hosts, e.Keys = e.Hosts[:min(len(e.Hosts), MaxHosts)], e.Keys[:min(len(e.Keys), MaxKeys)]
	e.Before = e.Before.UTC().Truncate(time.Second)
	return e
}

// size is what the entry takes of a list.
func (e Denial) size() int {
	text, err := json.Marshal(e)
	if err != nil { // its time is of no year that there is: check says so
		return 0
	}
	return len(text) + 1
}

// Denylist is what is signed.
type Denylist struct {
	Pool    string    `json:"pool"`
	Number  uint64    `json:"number"`
	Issued  time.Time `json:"issued"`
	Entries []Denial  `json:"entries"` // in the order of their nodes
}

// Next is the list after this one: with more entries, and without those that have ended. dropped are those for which
// there is no room. A certificate that began late because of this list is refused by the next entry about its holder,
// however soon that comes.
func (l Denylist) Next(now time.Time, more ...Denial) (next Denylist, dropped []Denial) {
	more = slices.Clone(more)
	for i, e := range more {
		more[i] = e.sound()
		floor := l.Floor(contract.CoordinatorName, e.Hosts, e.Keys)
		for _, name := range e.commonNames(l.Pool) {
			if f := l.Floor(name, nil, nil); f.After(floor) {
				floor = f
			}
		}
		if floor.After(e.Before) {
			more[i].Before = floor
		}
	}
	next = Denylist{Pool: l.Pool, Number: bulletin.Next(l.Number, now), Issued: now.UTC().Truncate(time.Millisecond)}
	next.Entries = merge(now, l.Entries, more)
	slices.SortStableFunc(next.Entries, func(a, b Denial) int { return b.Before.Compare(a.Before) })
	kept, size := 0, 0
	for ; kept < min(len(next.Entries), MaxDenials); kept++ {
		if size += next.Entries[kept].size(); size > room {
			break
		}
	}
	dropped, next.Entries = slices.Clone(next.Entries[kept:]), next.Entries[:kept:kept]
	for _, all := range [][]Denial{dropped, next.Entries} {
		slices.SortFunc(all, func(a, b Denial) int { return cmp.Compare(a.Node, b.Node) })
	}
	return next, dropped
}

// merge is all entries that have not ended, the latest of each node, in the order of nodes.
func merge(now time.Time, lists ...[]Denial) []Denial {
	latest := map[string]Denial{}
	for _, l := range lists {
		for _, e := range l {
			if have, ok := latest[e.Node]; (!ok || have.Before.Before(e.Before)) && now.Before(e.End()) {
				latest[e.Node] = e
			}
		}
	}
	all := make([]Denial, 0, len(latest))
	for _, e := range latest {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Denial) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// Floor is when a certificate that is asked for has to begin at the earliest, so that the list does not refuse it; the
// zero time: whenever. The hosts and keys of a coordinator count beside its common name.
func (l Denylist) Floor(commonName string, hosts, keys []string) (floor time.Time) {
	for _, e := range l.Entries {
		names := slices.Contains(e.commonNames(l.Pool), commonName) ||
			commonName == contract.CoordinatorName && e.serves(hosts, keys)
		if after := e.Before.Add(time.Second); names && after.After(floor) {
			floor = after
		}
	}
	return floor
}

// Sign is the list as one line of text.
func (l Denylist) Sign(a *pki.Authority) (text []byte, err error) {
	if err = l.check(); err == nil {
		text, err = denylistForm.Sign(a, l)
	}
	if err != nil {
		return nil, fmt.Errorf("denylist %d of pool %s: %w", l.Number, l.Pool, err)
	}
	return text, nil
}

// Recall is the list with a number that is not below those of other lists of the pool, and what they know beside it. Of
// a full list what would be dropped at once is not.
func (l Denylist) Recall(now time.Time, others ...Denylist) (recalled Denylist, more []Denial) {
	have := map[string]time.Time{}
	oldest := time.Time{}
	for _, e := range l.Entries {
		if have[e.Node] = e.Before; oldest.IsZero() || e.Before.Before(oldest) {
			oldest = e.Before
		}
	}
	for _, o := range others {
		l.Number = max(l.Number, o.Number)
		for _, e := range o.Entries {
			before, known := have[e.Node]
			if known && !before.Before(e.Before) || !now.Before(e.End()) ||
				len(l.Entries) >= MaxDenials && !e.Before.After(oldest) {
				continue
			}
			have[e.Node] = e.Before
			more = append(more, e)
		}
	}
	return l, more
}

// check tells what cannot be in a list, whoever signed it.
func (l Denylist) check() error {
	if n := len(l.Entries); n > MaxDenials {
		return fmt.Errorf("%d entries, want %d at most", n, MaxDenials)
	}
	for i, e := range l.Entries {
		switch {
		case e.Node == "" || i > 0 && e.Node <= l.Entries[i-1].Node:
			return fmt.Errorf("entry %d is of node %q, want each node once, in order", i, e.Node)
		case len(e.Hosts) > MaxHosts || len(e.Keys) > MaxKeys:
			return fmt.Errorf("entry of node %s: %d hosts and %d keys, want %d at most of each", e.Node, len(e.Hosts),
				len(e.Keys), MaxHosts)
		case e.Before.Nanosecond() != 0 || e.Before.IsZero():
			return fmt.Errorf("entry of node %s: before is %s, want whole seconds", e.Node, e.Before)
		}
	}
	return nil
}

// Within refuses a list with a number or a time beyond a bound.
func (l Denylist) Within(b bulletin.Bound) error {
	if err := b.Number(l.Number); err != nil {
		return err
	}
	if err := b.Time("issued", l.Issued); err != nil {
		return err
	}
	for _, e := range l.Entries {
		if err := b.Time("before of node "+e.Node, e.Before); err != nil {
			return err
		}
	}
	return nil
}

// OpenDenylist reads one line of text, of a pool, if one of the authorities has signed it: by.
func OpenDenylist(text []byte, pool string,
	authorities []*x509.Certificate) (l Denylist, by *x509.Certificate, err error) {
	fail := func(err error) (Denylist, *x509.Certificate, error) {
		return Denylist{}, nil, fmt.Errorf("denylist of pool %s: %w", pool, err)
	}
	s, err := denylistForm.Read(text)
	if err != nil {
		return fail(err)
	}
	if by = s.By(authorities...); by == nil {
		return fail(bulletin.ErrUnsigned)
	}
	if err := json.Unmarshal(s.Doc, &l); err != nil {
		return fail(err)
	}
	if l.Pool != pool {
		return fail(fmt.Errorf("it is of pool %q", l.Pool))
	}
	if err := l.check(); err != nil {
		return fail(err)
	}
	return l, by, nil
}

// DenylistLines are those of a text that are not empty.
func DenylistLines(text []byte) [][]byte {
	return slices.DeleteFunc(bytes.Split(text, []byte("\n")), func(l []byte) bool { return len(bytes.TrimSpace(l)) == 0 })
}
