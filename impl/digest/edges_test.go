package digest

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// worst are more edges than there is room for, each as long as can be.
func worst() (all []Edge) {
	for i := range 20 {
		all = append(all, Edge{ToHub, strings.Repeat(string(rune('a'+i)), 99), 65535, strings.Repeat("c", 99)})
	}
	return all
}

// TestEdges: edges are read as they were told, whatever their order, and how many have no room is told.
func TestEdges(t *testing.T) {
	all := []Edge{
		{ToCoordinator, "10.0.0.1", 10270, Timeout}, {FromCoordinator, "fd00::1", 10269, Refused},
		{ToHub, "edge-2", 10269, Stalls},
	}
	is := EdgesOf(all)
	count, named := is.List()
	if want := []Edge{all[0], all[2], all[1]}; count != 3 || !reflect.DeepEqual(named, want) {
		t.Errorf("%s: %d, %v", is, count, named)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if again := EdgesOf(append(all, all[0])); again != is {
		t.Errorf("%s, and in another order %s", is, again)
	}
	if got := Restored(3, named); got != is {
		t.Errorf("%s is restored as %s", is, got)
	}
	many := EdgesOf(worst())
	count, named = many.List()
	if len(many) > MaxEdges || count != 20 || len(named) != 2 || len(named[0].Peer) != maxPeer {
		t.Errorf("%d bytes: %s: %d, %v", len(many), many, count, named)
	}
	if got := Restored(count, named); got != many {
		t.Errorf("%s is restored as %s", many, got)
	}
	if got := Restored(0, nil); got != "" || EdgesOf(nil) != "" || WayOf("z") != "z" {
		t.Errorf("no edge is %q", got)
	}
	if count, named := Edges("9/1 x").List(); count != 0 || named != nil {
		t.Errorf("what is no list is %d, %v", count, named)
	}
}

// TestEdgeSays: for each way there are words, and the direction is the right one.
func TestEdgeSays(t *testing.T) {
	for _, w := range Ways() {
		if len(w.String()) < 2 || WayOf(w.String()) != w {
			t.Errorf("%q has no words", string(w))
		}
	}
	for want, e := range map[string]Edge{
		"hub -> coordinator: edge-1 to fd00::9, port 10270: nothing comes back": {ToCoordinator, "fd00::9", 10270, Timeout},
		"coordinator -> hub: fd00::9 to edge-1, port 10269: the connection is":  {FromCoordinator, "fd00::9", 10269, Refused},
		"hub -> hub: edge-1 to edge-2, port 10269: small packets":               {ToHub, "edge-2", 10269, Stalls},
		"z: edge-1 to x, port 1: it does not say why":                           {"z", "x", 1, "novel"},
	} {
		if got := e.Says("edge-1"); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
