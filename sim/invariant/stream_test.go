package invariant

import (
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// TestStream: a stream that goes on is judged at each step, and may do after a difference that it left in the middle
// what no other may.
func TestStream(t *testing.T) {
	item := func(key string, version uint64) client.Item {
		return client.Item{Key: key, UID: "of " + key, Version: version}
	}
	v := NewView(0)
	for i, key := range []string{"a", "b", "c"} {
		v.Happens(watch.Added, item(key, uint64(i+1)), uint64(i+1))
	}
	v.Happens(watch.Deleted, item("a", 4), 4)
	v.Happens(watch.Modified, item("b", 5), 5)
	open := func(version uint64) client.Op { return client.Op{What: client.OpOpen, Version: version} }
	event := func(typ watch.EventType, key string, version uint64) client.Op {
		return client.Op{What: client.OpEvent, Type: typ, Item: item(key, version), Version: version}
	}
	list := func(version uint64, keys ...string) client.Op {
		op := client.Op{What: client.OpList, Version: version}
		for i, key := range keys {
			op.Items = append(op.Items, item(key, uint64(i+1)))
		}
		return op
	}
	all := list(3, "a", "b", "c")
	for name, c := range map[string]struct {
		rules Rules
		ops   []client.Op
		tell  func(s *Stream) // before the last one
		want  string          // the rule that the last one breaks; "": none
	}{
		"goes on":               {Rules{}, []client.Op{all, event(watch.Deleted, "a", 4)}, nil, ""},
		"a list that is older":  {Rules{}, []client.Op{all, list(2, "a", "b")}, nil, NeverBack},
		"of another server":     {Rules{}, []client.Op{all, list(2, "a", "b")}, func(s *Stream) { s.Moves(true) }, ""},
		"a difference":          {Rules{Batches: true}, []client.Op{all, event(watch.Deleted, "a", 3)}, nil, ""},
		"deletes what lives on": {Rules{Batches: true}, []client.Op{all, event(watch.Deleted, "c", 3)}, nil, Complete},
		"deletes twice": {
			Rules{Batches: true}, []client.Op{all, event(watch.Deleted, "a", 3), event(watch.Deleted, "a", 4)}, nil, Unique,
		},
		"deletes twice, torn": {
			Rules{Batches: true, Torn: true},
			[]client.Op{all, event(watch.Deleted, "a", 3), open(3), event(watch.Deleted, "a", 4)}, nil, "",
		},
		"changes what it has not": {
			Rules{Batches: true}, []client.Op{list(3, "a"), event(watch.Modified, "b", 5)}, nil, Filtered,
		},
		"which it had yet to be shown": {
			Rules{Batches: true, Torn: true}, []client.Op{list(3, "a"), event(watch.Modified, "b", 5)},
			func(s *Stream) { s.Leaves(5) }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.rules.Stream(v)
			for i, op := range c.ops {
				last := i == len(c.ops)-1
				if last && c.tell != nil {
					c.tell(s)
				}
				switch got := s.Step(op); {
				case last && c.want == "" && len(got) > 0, last && c.want != "" && (len(got) != 1 || got[0].Rule != c.want):
					t.Errorf("broken: %v, want %q", got, c.want)
				}
			}
		})
	}
	u := v.Fork(3)
	u.Happens(watch.Added, item("d", 9), 9)
	if d := v.Differences(map[string]client.Item{"b": item("b", 5), "c": item("c", 3)}, 9); len(d) > 0 {
		t.Errorf("what happens in a history that forks from it happens in it: %v", d)
	}
}
