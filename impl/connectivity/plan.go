package connectivity

import (
	"cmp"
	"hash/fnv"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/digest"
)

// The rhythm; see the package comment.
const (
	Settle   = 20 * time.Second // the first attempt is after this time, or up to twice of it
	Usual    = 5 * time.Minute
	Again    = 15 * time.Second
	Failing  = time.Minute
	Failures = 2
	Patience = 10 * time.Second // of one attempt
)

// MaxEdges bounds the edges of a hub.
const MaxEdges = 32

// Edge is a way that a hub can try. It is a key.
type Edge struct {
	Way  digest.Way
	Peer string // the node of a hub, or the host of a coordinator
	Host string // host:port that is called
}

// Port is the one that is called: 443 if Host names none.
func (e Edge) Port() int32 {
	if _, text, err := net.SplitHostPort(e.Host); err == nil {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil {
			return int32(port)
		}
	}
	return 443
}

func (e Edge) compare(o Edge) int {
	return cmp.Or(cmp.Compare(e.Way, o.Way), cmp.Compare(e.Peer, o.Peer), cmp.Compare(e.Host, o.Host))
}

// Plan knows which edges there are, and how they are.
type Plan struct {
	Node string // whose hub it is: hubs try at different moments
	of   map[Edge]*standing
}

// standing is what is known of an edge.
type standing struct {
	due    time.Duration
	tried  time.Duration // when it was tried last
	failed int           // times in a row
	cause  string        // of the last attempt; "": it worked, or there was none
}

// Follow says which edges there are from now on. What is not among them is forgotten; beyond MaxEdges none is looked
// at.
func (p *Plan) Follow(now time.Duration, edges []Edge) {
	if p.of == nil {
		p.of = map[Edge]*standing{}
	}
	edges = edges[:min(len(edges), MaxEdges)]
	maps.DeleteFunc(p.of, func(e Edge, _ *standing) bool { return !slices.Contains(edges, e) })
	for _, e := range edges {
		if p.of[e] == nil {
			p.of[e] = &standing{due: now + Settle + p.moment(e, Settle)}
		}
	}
}

// moment is that of an edge within a span.
func (p *Plan) moment(e Edge, span time.Duration) time.Duration {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(p.Node + "\x00" + string(e.Way) + e.Peer + e.Host))
	return time.Duration(sum.Sum64() % uint64(span)) //nolint:gosec // less than the span
}

// Due are the edges to try now, sorted. Each is due again, whether Saw is called or not. alone: the hub is without its
// pool.
func (p *Plan) Due(now time.Duration, alone bool) (all []Edge) {
	for e, s := range p.of {
		if now >= s.due || alone && s.tried > 0 && now >= s.tried+Failing {
			all = append(all, e)
			s.tried, s.due = now, now+Usual
		}
	}
	slices.SortFunc(all, Edge.compare)
	return all
}

// Saw says how an attempt ended; cause "": the edge works.
func (p *Plan) Saw(now time.Duration, e Edge, cause string) {
	s := p.of[e]
	switch {
	case s == nil: // it is of the hub no more
	case cause == "":
		*s = standing{tried: s.tried, due: now + Usual - p.moment(e, Usual/5)}
	default:
		s.failed, s.cause = s.failed+1, cause
		if s.due = now + Again; s.failed >= Failures {
			s.due = now + Failing
		}
	}
}

// Failing are the edges that fail.
func (p *Plan) Failing() (all []digest.Edge) {
	for e, s := range p.of {
		if s.failed >= Failures {
			all = append(all, digest.Edge{Way: e.Way, Peer: e.Peer, Port: e.Port(), Cause: s.cause})
		}
	}
	return all
}
