package manager

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/manager/pools"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

// TestNews: while weir-manager has just begun to listen, each node that is heard changes numbers that no status has.
// A pool is told of when it is there, when somebody of it is heard, when all of it is known, and when it is gone.
func TestNews(t *testing.T) {
	const nodes = 25
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m, was := verdict.New(verdict.Config{Grace: 40 * time.Second}), map[string]pools.Seen{}
	name := func(i int) string { return fmt.Sprintf("node-%02d", i) }
	for i := range nodes {
		m.SetNode(now, name(i), verdict.Facts{Pool: "harbour"})
	}
	step := func(want string, from, to int) {
		t.Helper()
		var told []string
		for i := from; i < to; i++ {
			now = now.Add(100 * time.Millisecond)
			m.Heartbeat(now, name(i), false, true)
			told = append(told, news(was, m.Step(now))...)
		}
		if want == "" && len(told) != 0 || want != "" && !slices.Equal(told, []string{want}) {
			t.Errorf("nodes %d to %d: told of %v, want %q", from, to, told, want)
		}
	}
	if told := news(was, m.Step(now)); !slices.Equal(told, []string{"harbour"}) {
		t.Errorf("a pool that is new: told of %v", told)
	}
	step("harbour", 0, 1)
	step("", 1, nodes-1)
	step("harbour", nodes-1, nodes)
	step("", 0, nodes)
	for i := range nodes {
		m.RemoveNode(name(i))
	}
	if told := news(was, m.Step(now)); !slices.Equal(told, []string{"harbour"}) || len(was) != 0 {
		t.Errorf("a pool that is gone: told of %v", told)
	}
}
