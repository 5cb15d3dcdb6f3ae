package moved

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// shows is what a Set makes of one endpoint.
func shows(s *Set, text string) string {
	out, _ := s.Slice(sliceOf("web", discoveryv1.AddressTypeIPv4, text), false)
	if len(out.Endpoints) == 0 {
		return ""
	}
	return short(out.Endpoints[0])
}

// TestTake: the last statement of a node counts, an older one is refused, and one that comes again proves nothing.
func TestTake(t *testing.T) {
	s := pool(t, "a", "b")
	take := func(number, beat uint64, same bool, want error, texts ...string) {
		t.Helper()
		var all []Correction
		for _, x := range texts {
			all = append(all, correction(t, x))
		}
		st, _ := NewStatement("a", number, beat, all)
		if same {
			st = st.Again(beat)
		}
		_, err := s.Take(st)
		errorIs(t, err, want)
	}
	take(5, 5, true, ErrLacks)
	take(5, 5, false, nil, "p=10.0.0.5")
	take(5, 6, true, nil)
	take(6, 7, true, ErrLacks)
	take(4, 8, false, ErrOld, "p=10.0.0.4")
	take(6, 6, false, ErrOld, "p=10.0.0.6")
	take(4, 8, true, ErrOld)
	take(5, 6, true, nil)
	if got := shows(s, "p@a 10.0.0.1 rs"); got != "p@a 10.0.0.5 rs-" {
		t.Errorf("%s", got)
	}
	take(7, 8, false, nil, "p=10.0.0.7")
	if got := shows(s, "p@a 10.0.0.1 rs"); got != "p@a 10.0.0.7 rs-" || s.Len() != 1 {
		t.Errorf("%s, %d corrections", got, s.Len())
	}
	_, err := s.Take(Statement{Node: "z", Number: 1, Beat: 1})
	errorIs(t, err, ErrStranger)
	if err := s.Members(slices.Repeat([]string{"a"}, MaxNodes+1)); err == nil {
		t.Error("a pool without a bound")
	}
	if err := s.Members([]string{"b"}); err != nil || s.Len() != 0 {
		t.Errorf("%d corrections of a node that has left, %v", s.Len(), err)
	}
}

// TestSilence: the pods of a node that is silent are not ready, until it is heard. Neither a statement that comes again
// nor time in which the desk was not read counts, and while the cloud is there nobody is silent.
func TestSilence(t *testing.T) {
	const p, q = "p@a 10.0.0.1 rs", "q@b 10.1.0.1 rs"
	s := pool(t, "a", "b")
	now := time.Duration(0)
	pass := func(by, step time.Duration, want bool) {
		t.Helper()
		changed := false
		for end := now + by; now < end; {
			now += step
			changed = s.Expire(now) || changed
		}
		if changed != want {
			t.Errorf("at %v: changed %t", now, changed)
		}
	}
	says(t, s, "a", 1)
	says(t, s, "b", 1)
	for range 10 {
		pass(Every, Every, false)
		st, _ := NewStatement("a", 1, uint64(now), nil)
		if _, err := s.Take(st); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(Statement{Node: "b", Number: 1, Beat: 1}); err != nil {
			t.Fatal(err)
		}
		if now >= 4*Every {
			break
		}
	}
	if shows(s, p) != p+"-" || shows(s, q) != q+"-" {
		t.Fatalf("%s, %s", shows(s, p), shows(s, q))
	}
	pass(100*time.Hour, 100*time.Hour, true) // b, which was quiet for 20 s; a was not for 30 s
	if shows(s, p) != p+"-" || shows(s, q) != "q@b 10.1.0.1 -" {
		t.Errorf("%s, %s", shows(s, p), shows(s, q))
	}
	if !says(t, s, "b", 2) || shows(s, q) != q+"-" {
		t.Errorf("heard again: %s", shows(s, q))
	}
	changed, err := s.Take(Statement{Node: "b", Number: 2, Beat: 3, Same: true, Age: Silence})
	if !changed || err != nil || shows(s, q) != "q@b 10.1.0.1 -" {
		t.Errorf("heard long ago, as a desk says: changed %t, %v, %s", changed, err, shows(s, q))
	}
	if !says(t, s, "b", 4) || shows(s, q) != q+"-" {
		t.Errorf("heard again: %s", shows(s, q))
	}
	pass(Silence, Every, true)
	if !s.Away(false, 0) || shows(s, p) != p+"-" || s.Away(false, 0) {
		t.Error("a node is silent though the cloud is there")
	}
	if s.Away(true, time.Hour); shows(s, p) != p+"-" {
		t.Error("a node is silent at once")
	}
	// Of the time before the pool was known to be cut off, that counts in which a node that lives would have stated.
	for _, unheard := range []time.Duration{0, Notices, Silence, Silence + Notices - Every} {
		s.Away(false, 0)
		pass(2*Silence, Every, false)
		if s.Away(true, unheard); shows(s, p) != p+"-" {
			t.Errorf("a node is silent at once, %v after the cloud was heard", unheard)
		}
		pass(Silence-max(unheard-Notices, 0)-Every, Every, false)
		pass(Every, Every, true)
	}
	s.Away(false, 0)
	pass(2*Silence, Every, false)
	if s.Away(true, Silence+Notices); shows(s, p) == p+"-" {
		t.Error("a node is not silent, though it would have stated in time")
	}
}

func each[T any](all ...T) iter.Seq[T] { return slices.Values(all) }

// TestReturn: a correction that its node withdraws stays until the slices have come that its node had. What is left
// without a word of the node is the cloud's at once, and the node's again when it says it again.
func TestReturn(t *testing.T) {
	const was, is = "p@a 10.0.0.1 rs", "p@a 10.0.0.9 rs-"
	s := pool(t, "a", "b")
	says(t, s, "a", 1, "p=10.0.0.9")
	s.Settle(Reached{100, 100})
	if s.Len() != 1 {
		t.Error("settled though the node says it")
	}
	st, _ := NewStatement("a", 2, 2, nil)
	st.At = Reached{70, 0, 90}
	if changed, err := s.Take(st); changed || err != nil || shows(s, was) != is || !s.Leaving() {
		t.Errorf("taken back at once: %t %v", changed, err)
	}
	if s.Settle(Reached{69, 1, 90}); shows(s, was) != is {
		t.Error("the slices have not come")
	}
	if s.Settle(Reached{70, 1}); shows(s, was) != was+"-" || s.Len() > 0 || s.Leaving() {
		t.Errorf("the slices have come, %d corrections", s.Len())
	}

	says(t, s, "a", 3, "p=10.0.0.9")
	s.Release()
	if _, err := s.Take(Statement{Node: "a", Number: 3, Beat: 4, Same: true}); !errors.Is(err, ErrLacks) {
		t.Errorf("what was left is the same: %v", err)
	}
	if s.Settle(Reached{1, 1}); shows(s, was) != was+"-" {
		t.Error("the cloud has the last word")
	}
	if !says(t, s, "a", 3, "p=10.0.0.9") || shows(s, was) != is {
		t.Error("said again, and not shown")
	}
	if changed, err := s.Take(Statement{Node: "a", Number: 3, Beat: 4, Same: true}); changed || err != nil {
		t.Errorf("the same: %t %v", changed, err)
	}

	// A node that was silent says it again to a desk that has lost all, so its contents come with a newer beat.
	s.Away(false, 0)
	says(t, s, "a", 5, "p=10.0.0.9")
	for now := Every; s.Len() > 0 && now < 2*Silence; now += Every {
		s.Expire(now)
		s.Settle(Reached{1, 1})
	}
	st, _ = NewStatement("a", 5, 9, []Correction{correction(t, "p=10.0.0.9")})
	if changed, err := s.Take(st); !changed || err != nil {
		t.Errorf("heard again: changed %t, %v", changed, err)
	}
	if s.Expire(2*Silence + Every); shows(s, was) != is || s.Leaving() {
		t.Errorf("heard again, and not shown: %s", shows(s, was))
	}

	s = pool(t, "a")
	says(t, s, "a", 1, "p=10.0.0.9")
	says(t, s, "a", 2)
	says(t, s, "a", 3, "p=10.0.0.9")
	if s.Settle(Reached{100, 100}); s.Len() != 1 {
		t.Error("said again, and gone")
	}
	for i := range uint64(5) { // what is withdrawn does not grow without a bound
		var all []string
		for j := range MaxPods {
			all = append(all, fmt.Sprintf("p%06d=10.0.0.9", int(i)*MaxPods+j))
		}
		says(t, s, "a", 10+i, all...)
	}
	if s.Len() > 2*MaxPods {
		t.Errorf("%d corrections", s.Len())
	}
}
