package verdict

import (
	"testing"
	"time"
)

func TestScripts(t *testing.T) {
	const three = `
		0 node a p
		0 node b p
		0 node c p
		0 node cloud q
		0 lead
	`
	for name, text := range map[string]string{
		"nothing is known at the start, and pools are listed until somebody is heard": `
			0 node a p
			0 node b p
			0 lead
			0 want a unknown kept
			4 beat a
			5 want a normal
			5 want b unknown kept
			6 beat b
			6 want b normal
			6 pool p heard
		`,
		"a node whose heartbeats are delegated, and that returns": three + `
			1 every b c cloud
			1 beat a
			12 delegated a
			12 want a delegated
			30 want a delegated
			31 beat a
			31 want a normal
		`,
		"a node that dies alone": three + `
			1 every b c cloud
			1 beat a
			30 want a normal
			50 want a normal
			51 want a missing
			55 want a missing
			61 want a missing dead
			70 beat a
			70 want a normal
		`,
		"a node that is delegated and then dies": three + `
			1 every b c cloud
			1 delegated a
			50 want a delegated
			52 want a missing
			61 want a missing dead
		`,
		"a silent node that is taken out of its pool is given up: what was denied while it was kept is made up for": three + `
			1 every a b c cloud
			99 every cloud
			200 want a missing kept
			200 node a -
			201 want a missing owed
			201 want b missing kept
			202 node b q
			203 want b missing dead owed
		`,
		"a pool falls silent and is kept for ever; nobody has to be released when it returns": three + `
			1 every a b c cloud
			99 every cloud
			114 want a normal
			114 pool p heard
			116 want a normal kept
			116 pool p silent
			5000 want a missing kept
			5000 every a b c cloud
			5011 want a normal
			5011 pool p heard
			5100 want a normal
		`,
		"until the cloud sees what is heard, a node stays kept": three + `
			1 every a b c cloud
			99 every cloud
			150 node a p unreachable
			1000 every a b c cloud
			1010 want a normal kept
			1015 want b normal
			1018 node a p
			1018 want a normal
		`,
		"also one that comes back through a peer and cannot report": three + `
			1 every a b c cloud
			99 every cloud
			150 node a p unreachable
			1000 every b c cloud
			1001 delegated a
			1011 delegated a
			1012 want a delegated kept
			1300 want a missing dead owed
		`,
		"a pool returns without one node, which has a grace period and is dead then": three + `
			1 every a b c cloud
			99 every cloud
			1000 every b c cloud
			1001 want b normal
			1048 want a missing kept
			1051 want a missing dead owed
			1060 done a
			1061 want a missing dead
			1070 beat a
			1070 want a normal
		`,
		"a node that was dead when its pool fell silent stays dead": three + `
			1 every a b c cloud
			99 every b c cloud
			161 want a missing dead
			199 every cloud
			260 want a missing dead
			260 want b missing kept
		`,
		"a node that was silent for less than a grace period is kept with its pool": three + `
			1 every a b c cloud
			99 every b c cloud
			121 every cloud
			500 want a missing kept
		`,
		"evict after ten minutes, and return": three + `
			0 usual evict:10m
			1 every a b c cloud
			99 every cloud
			150 node a p unreachable
			650 want a missing kept
			689 pool p silent
			691 pool p given-up
			691 want a missing owed
			700 done a
			701 want a missing
			900 every a b c cloud
			911 want a normal kept
			912 node a p
			913 want a normal
			913 pool p heard
		`,
		"keep, and then evict, and keep again": three + `
			1 every a b c cloud
			99 every cloud
			700 want a missing kept
			700 policy p evict:5m
			701 pool p given-up
			701 want a missing owed
			702 policy p keep
			702 want a missing kept
			702 pool p silent
		`,
		"nothing is given up while nobody at all is heard, nor soon after": three + `
			0 usual evict:1m
			1 every a b c cloud
			99 every
			700 want a missing kept
			700 every cloud
			740 want a missing kept
			765 want a missing owed
		`,
		"bound nodes are never let go, but not kept either": three + `
			0 node a p bound
			0 usual evict:1m
			1 every b c cloud
			1 beat a
			30 want a normal bound
			500 want a missing dead bound
			500 node a p
			500 want a missing dead owed
		`,
		"bound for a time": three + `
			0 node a p bound=5m
			1 every b c cloud
			1 beat a
			300 want a missing dead bound
			302 want a missing dead owed
		`,
		"a bound node in a pool that is given up": three + `
			0 node a p bound
			0 usual evict:1m
			1 every a b c cloud
			99 every cloud
			140 want a missing kept bound
			160 want a missing bound owed
		`,
		"a clock that was set back: stock counts only growth": three + `
			1 every b c cloud
			1 beat a
			11 backwards a
			21 backwards a
			22 want a normal
			31 backwards a
			31 want a normal kept
			41 backwards a
			42 want a normal kept
			51 beat a
			51 want a normal
		`,
		"who takes over knows who is dead, since when a pool is silent and what is owed": three + `
			0 usual evict:10m
			1 every a b c cloud
			99 every b c cloud
			199 every cloud
			300 want a missing dead
			300 want b missing kept
			301 restart
			301 want a unknown dead
			301 want b unknown kept
			700 want b missing kept
			791 want b missing owed
			792 restart
			792 want b unknown owed
			795 pool p given-up
			843 want a missing dead
		`,
		"a process that leads for the first time lists nobody who is heard": three + `
			0 every a b c cloud
			31 restart
			32 want a unknown kept
			32 pool p silent
			41 want a normal
			41 pool p heard
			101 want a normal
		`,
		"a new node of a pool that is heard is not kept": three + `
			1 every a b c cloud
			100 node d p
			101 want d unknown
			151 want d missing dead
		`,
		"nodes without a pool are seen, not kept": `
			0 node a -
			0 node x q
			0 lead
			0 every x
			1 delegated a
			2 want a delegated
			60 want a missing
		`,
		"what is gone is forgotten": three + `
			1 every a b c cloud
			99 every cloud
			200 gone a
			200 gone b
			200 gone c
			201 pool p heard
			201 want a unknown
		`,
	} {
		t.Run(name, func(t *testing.T) { script(t, text) })
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{}, {Grace: -1}, {Grace: time.Second, Silent: time.Second}, {Grace: time.Second, Silent: -1},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := (Config{Grace: time.Minute, Silent: 20 * time.Second}).Validate(); err != nil {
		t.Error(err)
	}
}
