package runner

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/link"
)

func TestMostOpen(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1000+int64(seconds), 0) }
	open := func(from int) link.Connection { return link.Connection{Opened: at(from)} }
	closed := func(from, to int) link.Connection { return link.Connection{Opened: at(from), Closed: at(to)} }
	for name, c := range map[string]struct {
		connections []link.Connection
		want        int
	}{
		"none":               {nil, 0},
		"one all the time":   {[]link.Connection{open(1)}, 1},
		"one of before":      {[]link.Connection{closed(1, 5), open(6)}, 1},
		"one of after":       {[]link.Connection{open(1), open(21)}, 1},
		"one after another":  {[]link.Connection{closed(1, 12), closed(12, 15), open(15)}, 1},
		"beside one another": {[]link.Connection{open(1), closed(11, 13), closed(12, 14), closed(15, 16)}, 3},
		"until the end":      {[]link.Connection{open(1), closed(19, 30)}, 2},
	} {
		if got := mostOpen(c.connections, at(10), at(20)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
