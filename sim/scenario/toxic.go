package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

// Faults of toxiproxy's on a link, by toxiproxy's names.
const (
	ResetPeer Action = "reset_peer" // connections are reset at both ends, a while after they were opened
	Timeout   Action = "timeout"    // nothing arrives; connections are closed after a while, or when it is over
	Slicer    Action = "slicer"     // bytes arrive in small pieces, with pauses
	SlowClose Action = "slow_close" // the end of a stream arrives late
	LimitData Action = "limit_data" // connections are closed after so many bytes
)

const (
	maxToxicTime = time.Minute
	maxPause     = time.Second // between two pieces of a slicer
	maxSlice     = 64_000
	maxLimited   = 1_000_000_000
)

// Toxic is a fault of toxiproxy's on a link. Its attributes have toxiproxy's names and units.
type Toxic struct {
	common

	Type       Action
	Attributes map[string]int64
}

// toxicType says which attributes a toxic has, and whether it is as bad as a cut.
type toxicType struct {
	action     Action
	attributes []attribute
	undirected bool // it ends both directions at once
	stops      bool
}

// attribute of a toxic: a time of that unit, or, without one, a number of bytes.
type attribute struct {
	name     string
	unit     time.Duration
	from, to int64
	optional bool
}

// toxics are one of each type, without attributes.
func toxics() (all []Kind) {
	for _, t := range toxicTypes() {
		all = append(all, &Toxic{Type: t.action, Attributes: map[string]int64{}})
	}
	return all
}

func toxicTypes() []toxicType {
	time := func(name string) []attribute {
		return []attribute{{name: name, unit: time.Millisecond, to: maxToxicTime.Milliseconds()}}
	}
	return []toxicType{
		{action: ResetPeer, attributes: time("timeout"), undirected: true, stops: true},
		{action: Timeout, attributes: time("timeout"), stops: true},
		{action: Slicer, attributes: slicerAttributes()},
		{action: SlowClose, attributes: time("delay")},
		{action: LimitData, attributes: []attribute{{name: "bytes", from: 1, to: maxLimited}}, stops: true},
	}
}

func slicerAttributes() []attribute {
	return []attribute{
		{name: "average_size", from: 1, to: maxSlice},
		{name: "size_variation", to: maxSlice, optional: true},
		{name: "delay", unit: time.Microsecond, to: maxPause.Microseconds(), optional: true},
	}
}

func (t *Toxic) kind() toxicType {
	all := toxicTypes()
	return all[slices.IndexFunc(all, func(k toxicType) bool { return k.action == t.Type })]
}

func (t *Toxic) rule() actionRule {
	r := actionRule{t.Type, links(), []string{"for", "link"}, []string{"repeat", "every"}}
	if !t.kind().undirected {
		r.optional = append(r.optional, "direction")
	}
	for _, a := range t.kind().attributes {
		if a.optional {
			r.optional = append(r.optional, a.name)
		} else {
			r.required = append(r.required, a.name)
		}
	}
	return r
}

// own are its attributes, in the order of their names.
func (t *Toxic) own() (all []own) {
	said := t.said()
	for _, a := range t.kind().attributes {
		all = append(all, own{a.name, said[a.name], func(v value, _ Pool) { t.Attributes[a.name] = v.attribute(a) }})
	}
	slices.SortFunc(all, func(a, b own) int { return strings.Compare(a.name, b.name) })
	return all
}

func (v value) attribute(a attribute) int64 {
	if a.unit == 0 {
		return v.bytes(a.from, a.to, "4kB")
	}
	d := v.duration(time.Duration(a.to) * a.unit)
	if d%a.unit != 0 {
		v.mistake(fmt.Sprintf("toxiproxy counts in %v: want a multiple", a.unit))
	}
	return int64(d / a.unit)
}

func (t *Toxic) check(o object, _ Fault, _ Pool, _ []Pool) {
	if t.Type == Slicer && t.Attributes["average_size"] > 0 &&
		t.Attributes["size_variation"] >= t.Attributes["average_size"] {
		o.fields["size_variation"].contradiction("pieces would have no bytes: want less than average_size")
	}
}

// said are its attributes as a file has them.
func (t *Toxic) said() map[string]string {
	out := map[string]string{}
	for _, a := range t.kind().attributes {
		switch n, has := t.Attributes[a.name]; {
		case !has:
		case a.unit == 0:
			out[a.name] = Size(n).String()
		default:
			out[a.name] = (time.Duration(n) * a.unit).String()
		}
	}
	return out
}

// effect: only some are as bad as a cut.
func (t *Toxic) effect(f Fault) effect {
	e := t.common.effect(f)
	e.batches = e.batches && t.kind().stops
	return e
}

// Aim implements Kind.
func (t *Toxic) Aim(ctx context.Context, lab Lab, at *Aim) error {
	return aimLine(ctx, lab, at, t.kind().stops)
}

// Begin implements Kind: the toxic is on each of the links, for each of the nodes.
func (t *Toxic) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	var off []func()
	heal := func(context.Context) error {
		for _, remove := range off {
			remove()
		}
		return nil
	}
	var failed error
	at.lines(lab, func(l Line, n string) {
		remove, err := l.AddToxic(at.direction(), n, string(t.Type), t.Attributes)
		if err != nil {
			failed = errors.Join(failed, err)
			return
		}
		off = append(off, remove)
	})
	if failed != nil {
		return Going{}, errors.Join(failed, heal(ctx))
	}
	return Going{Heal: heal}, nil
}

// words are its attributes: ": timeout 2s".
func (t *Toxic) words() string {
	said, words := t.said(), []string{}
	for _, a := range t.kind().attributes {
		if s, has := said[a.name]; has {
			words = append(words, a.name+" "+s)
		}
	}
	return ": " + strings.Join(words, ", ")
}

// drawnToxics are those of a storm: two, of any type. They are drawn from numbers of their own, so that the rest of a
// storm is what its seed has always been.
func (s *Scenario) drawnToxics(f Fault) (all []Fault) {
	p, rnd := s.PoolOf(f), rand.New(rand.NewPCG(uint64(s.Seed), uint64(f.At)+1))
	targets := []Target{WholePool, Hub(1 + rnd.IntN(p.Nodes))}
	if p.Coordinators > 0 {
		targets = append(targets, Leader)
	}
	for range 2 {
		k := drawToxic(rnd)
		one := Fault{
			Kind: k, Target: targets[rnd.IntN(len(targets))], For: lasting(rnd), Link: CloudLink,
		}
		if way := []link.Direction{link.Both, link.Up, link.Down}[rnd.IntN(3)]; !k.kind().undirected {
			one.Direction = way
		}
		all = append(all, one)
	}
	return all
}

// drawToxic draws one that a pool is to live through.
func drawToxic(rnd *rand.Rand) *Toxic {
	t := &Toxic{Type: toxicTypes()[rnd.IntN(len(toxicTypes()))].action, Attributes: map[string]int64{}}
	between := func(from, to int64) int64 { return from + rnd.Int64N(to-from) }
	switch t.Type {
	case ResetPeer, Timeout:
		t.Attributes["timeout"] = between(0, 3000)
	case Slicer:
		t.Attributes["average_size"], t.Attributes["delay"] = between(100, 1500), between(0, 5000)
		t.Attributes["size_variation"] = t.Attributes["average_size"] / 2
	case SlowClose:
		t.Attributes["delay"] = between(0, 5000)
	case LimitData:
		t.Attributes["bytes"] = between(100, 50_000)
	}
	return t
}
