package ownwatch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/testkit"
)

// TestSlow: a client that takes nothing holds up its stream, and neither it nor the hub loses or gathers anything.
func TestSlow(t *testing.T) {
	s := newSite(t)
	c, o := s.opens()
	const step, n = 64 << 10, 40
	sent := make(chan int, n+1)
	go func() {
		defer close(sent)
		for i := range n {
			if o.sends(pod("MODIFIED", 11+i, strings.Repeat("x", step))) != nil {
				return
			}
			sent <- i
		}
	}()
	of := s.streamOf(s.key())
	behind := func() int {
		of.mu.Lock()
		defer of.mu.Unlock()
		return of.behind()
	}
	testkit.Until(t, 10*time.Second, "the stream to be held up", func() bool { return behind() > ahead })
	for i := range n {
		if most := behind(); most > ahead+2*step {
			t.Fatalf("%d bytes are held", most)
		}
		c.sees(fmt.Sprintf("MODIFIED %d", 11+i))
	}
	for range sent {
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.size > keeps+2*step {
		t.Errorf("%d bytes are kept", of.size)
	}
	if of.base <= 10 {
		t.Error("who has seen the list only may join, though what followed is not kept")
	}
}

// TestHeldUp: a stream waits for its slowest client, and for none that has left.
func TestHeldUp(t *testing.T) {
	s := &stream{
		clock: clocktesting.NewFakeClock(time.Now()), taken: map[*reader]int{}, changed: make(chan struct{}),
		cancel: func() {},
	}
	r := s.first(t.Context(), time.Time{})
	waits, over := context.WithCancel(t.Context())
	over()
	ev := &wire.Event{Type: wire.Added, Version: 1, Frame: make([]byte, ahead/8)}
	for range 8 {
		check(t, s.take(waits, ev))
	}
	if err := s.take(waits, ev); err == nil {
		t.Fatal("more is taken than may be held")
	}
	check(t, r.Close())
	check(t, s.take(waits, ev))
}
