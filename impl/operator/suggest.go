package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// maxRows is how many resources are told by name.
const maxRows = 20

// suggestion is what is known of the reads of a pool. Bytes are those of a day.
type suggestion struct {
	Pool   string       `json:"pool"`
	Hubs   int          `json:"hubs"`     // that have told lately that they run
	Told   int          `json:"hubsTold"` // that have told lately what is read
	Passed []passedRead `json:"passed"`   // what the cloud answers to each node, the most bytes first
	Others int64        `json:"othersBytesPerDay"`
	// UnreadKnown is false while a hub has not told what is read there.
	UnreadKnown bool                `json:"unreadKnown"`
	Unread      []nodepool.Resource `json:"unread"` // what is shared, and no node reads
	// Default is what the pool shares because its NodePool names nothing.
	Default []nodepool.Resource `json:"default,omitempty"`
}

// passedRead is one resource that the cloud answers to each node.
type passedRead struct {
	Resource string `json:"resource"`
	Nodes    int    `json:"nodes"`
	Bytes    int64  `json:"bytesPerDay"`
	// Saves is what would not cross the link if the pool shared it: all but what the node reads that reads most.
	Saves int64              `json:"savesBytesPerDay"`
	Share *nodepool.Resource `json:"share,omitempty"` // the entry of poolScopeMetadata that shares it
	Why   string             `json:"why,omitempty"`   // there is none

	most int64
}

// suggest is what follows from the status of a Pool and its NodePool, which may be nil. aggregated are the APIs that
// another server than kube-apiserver answers, as version.group.
func suggest(p *poolv1.Pool, n *nodepool.NodePool, aggregated map[string]bool, now time.Time) suggestion {
	s := suggestion{Pool: p.Name, Passed: []passedRead{}, Unread: []nodepool.Resource{}}
	shared := s.scope(n)
	rows := map[string]*passedRead{}
	unread := map[string]int{}
	s.UnreadKnown = len(p.Status.Hubs) < poolv1.MaxHubs // else there are more that are not told of
	for _, h := range p.Status.Hubs {
		runs := now.Sub(h.Told.Time) <= digest.Lapsed
		tells := h.Reads != nil && now.Sub(h.Reads.Told.Time) <= digest.ReadsLapsed
		if runs {
			s.Hubs++
			s.UnreadKnown = s.UnreadKnown && tells
		}
		if !tells {
			continue
		}
		if runs {
			s.Told++
			for _, name := range h.Reads.Unread {
				unread[name]++
			}
		}
		s.Others += h.Reads.PassedRestBytes
		for _, passed := range h.Reads.Passed {
			s.add(rows, passed, shared)
		}
	}
	if s.UnreadKnown = s.UnreadKnown && s.Told > 0; s.UnreadKnown && s.Default == nil { // a default costs nothing unread
		for _, r := range shared {
			if unread[nameOf(r)] == s.Told {
				s.Unread = append(s.Unread, r)
			}
		}
	}
	s.rank(rows, shared, aggregated)
	return s
}

// scope is what the pool shares.
func (s *suggestion) scope(n *nodepool.NodePool) []nodepool.Resource {
	if n != nil && len(n.Spec.PoolScopeMetadata) > 0 {
		return n.Spec.PoolScopeMetadata
	}
	for _, name := range directory.DefaultScope() {
		if r, err := resourceOf(name); err == nil {
			s.Default = append(s.Default, r)
		}
	}
	return s.Default
}

// add takes what one node reads of a resource.
func (s *suggestion) add(rows map[string]*passedRead, passed poolv1.PassedReads, shared []nodepool.Resource) {
	r, err := resourceOf(passed.Resource)
	switch {
	case err != nil || digest.Private(r.Resource, r.Group):
		s.Others += passed.Bytes
		return
	case slices.Contains(shared, r): // since then
		return
	}
	row, ok := rows[passed.Resource]
	if !ok {
		row = &passedRead{Resource: passed.Resource}
		rows[passed.Resource] = row
	}
	row.Nodes++
	row.Bytes += passed.Bytes
	row.most = max(row.most, passed.Bytes)
	row.Saves = row.Bytes - row.most
}

// rank puts the most bytes first, and says how each is shared, or why it is not.
func (s *suggestion) rank(rows map[string]*passedRead, shared []nodepool.Resource, aggregated map[string]bool) {
	all := slices.SortedFunc(maps.Values(rows), func(a, b *passedRead) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Resource, b.Resource))
	})
	room := directory.MaxScope - len(shared)
	for i, row := range all {
		if i >= maxRows {
			s.Others += row.Bytes
			continue
		}
		r, err := resourceOf(row.Resource)
		other := slices.IndexFunc(shared, func(o nodepool.Resource) bool {
			return o.Group == r.Group && o.Resource == r.Resource
		})
		switch {
		case err != nil:
			row.Why = err.Error()
		case aggregated[r.Version+"."+r.Group]:
			row.Why = "another server than kube-apiserver answers it, and that is never shared"
		case other >= 0:
			row.Why = fmt.Sprintf("%s of it is shared, and one version only can be", shared[other].Version)
		case row.Nodes < 2:
			row.Why = "one node reads it, and nothing would be saved"
		case room <= 0:
			row.Why = fmt.Sprintf("the pool shares %d resources already, and no more than that can be", len(shared))
		default:
			row.Share = &r
			room--
		}
		s.Passed = append(s.Passed, *row)
	}
}

// suggestBrief is how much there is to suggest.
type suggestBrief struct {
	Share  int   `json:"share"` // resources
	Saves  int64 `json:"savesBytesPerDay"`
	Unread int   `json:"unread"` // shared resources
}

// Brief is how much there is; nil: nothing.
func (s *suggestion) Brief() *suggestBrief {
	b := &suggestBrief{Unread: len(s.Unread)}
	for _, r := range s.Passed {
		if r.Share != nil {
			b.Share++
			b.Saves += r.Saves
		}
	}
	if b.Share+b.Unread == 0 {
		return nil
	}
	return b
}

func resourceOf(name string) (nodepool.Resource, error) {
	resource, version, group, err := digest.Split(name)
	return nodepool.Resource{Group: group, Version: version, Resource: resource}, err
}

// nameOf is what hubs call a resource.
func nameOf(r nodepool.Resource) string { return r.Resource + "." + r.Version + "." + r.Group }
