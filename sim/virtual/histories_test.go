package virtual

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// leaseState is the election Lease. Version "" is none.
type leaseState struct{ version, uid, holder string }

// leaseModel is one register with optimistic concurrency, as kube-apiserver has it, beside which the coordinator takes
// changes only of the node that holds the Lease. An operation is its input and its output.
var leaseModel = porcupine.NondeterministicModel{
	Init:              func() []any { return []any{leaseState{}} },
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, _ any) string { return fmt.Sprintf("%+v", in) },
	Step: func(state, input, _ any) (next []any) {
		s, x := state.(leaseState), input.(LeaseOp)
		is := leaseState{x.Is.Version, x.Is.UID, x.Is.Holder}
		fits := s.version == x.Based && (x.Based == "" || s.uid == x.UID)
		switch {
		case x.Kind == "wipe":
			return []any{leaseState{}}
		case x.Kind == "effective" && contract.NodeOfIdentity(s.holder) != x.Holder:
			return nil
		case x.Kind == "read" && x.Outcome == role.OK && is != s:
			return nil
		case x.Kind != "write", x.Outcome == role.Conflict: // it may be refused for more than its version
			return []any{s}
		case x.Outcome == role.OK && fits:
			return []any{is}
		case x.Outcome == role.Failed && fits && is.version != "":
			return []any{s, is}
		case x.Outcome == role.Failed:
			return []any{s}
		}
		return nil
	},
}

// judged is what the model says of a history.
func judged(ops []*LeaseOp) porcupine.CheckResult {
	history := make([]porcupine.Operation, len(ops))
	for i, x := range ops {
		history[i] = porcupine.Operation{ClientId: i, Input: *x, Call: int64(x.From), Return: int64(x.Until)}
		if x.Until < 0 {
			history[i].Return = math.MaxInt64
		}
	}
	return porcupine.CheckOperationsTimeout(leaseModel.ToModel(), history, 20*time.Second)
}

// TestElectionsAreLinearizable: what all hubs did to the election Lease, and what the coordinator took of whom, is a
// history of one register, through whatever faults.
func TestElectionsAreLinearizable(t *testing.T) {
	seeds := rand.New(rand.NewPCG(*from, 3))
	n := 0
	for range *schedules / 20 {
		number := seeds.Uint64()
		var ops []*LeaseOp
		if _, err := Random(number, func(c *Config) { c.Lease = func(x *LeaseOp) { ops = append(ops, x) } }); err != nil {
			t.Fatalf("seed %d: %v", number, err)
		}
		n += len(ops)
		if got := judged(ops); got != porcupine.Ok {
			t.Fatalf("seed %d: %d operations on the election Lease: %v", number, len(ops), got)
		}
	}
	if n == 0 {
		t.Error("nobody touched the Lease")
	}
	t.Logf("%d operations", n)
}

// TestHistoriesAreJudged: the model can fail.
func TestHistoriesAreJudged(t *testing.T) {
	is := func(version, holder string) role.Record {
		return role.Record{Exists: true, Version: version, UID: "u", Holder: holder}
	}
	write := func(based, version, holder string) LeaseOp {
		x := LeaseOp{Kind: "write", Based: based, Holder: holder, Is: is(version, holder)}
		if based != "" {
			x.UID = "u"
		}
		return x
	}
	read := func(version, holder string) LeaseOp { return LeaseOp{Kind: "read", Is: is(version, holder)} }
	effective := func(node string) LeaseOp { return LeaseOp{Kind: "effective", Holder: node} }
	lost := write("1", "2", "b_1")
	lost.Outcome, lost.Until = role.Failed, -1
	for name, c := range map[string]struct {
		ops  []LeaseOp
		want porcupine.CheckResult
	}{
		"one after the other": {
			[]LeaseOp{write("", "1", "a_1"), read("1", "a_1"), write("1", "2", "b_1")}, porcupine.Ok,
		},
		"two create it": {[]LeaseOp{write("", "1", "a_1"), write("", "2", "b_1")}, porcupine.Illegal},
		"a stale read": {
			[]LeaseOp{write("", "1", "a_1"), write("1", "2", "b_1"), read("1", "a_1")}, porcupine.Illegal,
		},
		"a lost update": {
			[]LeaseOp{write("", "1", "a_1"), write("1", "2", "b_1"), write("1", "3", "c_1")}, porcupine.Illegal,
		},
		"an answer that was lost":     {[]LeaseOp{write("", "1", "a_1"), lost, read("2", "b_1")}, porcupine.Ok},
		"a request that was lost":     {[]LeaseOp{write("", "1", "a_1"), lost, read("1", "a_1")}, porcupine.Ok},
		"a change of the holder":      {[]LeaseOp{write("", "1", "a_1"), effective("a")}, porcupine.Ok},
		"a change of another":         {[]LeaseOp{write("", "1", "a_1"), effective("b")}, porcupine.Illegal},
		"a change after it was wiped": {[]LeaseOp{write("", "1", "a_1"), {Kind: "wipe"}, effective("a")}, porcupine.Illegal},
	} {
		var ops []*LeaseOp
		for i, x := range c.ops {
			x.From = time.Duration(2*i) * time.Second
			if x.Until == 0 {
				x.Until = x.From + time.Second
			}
			ops = append(ops, &x)
		}
		if got := judged(ops); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
