package ownwatch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// TestJoin: a client's time is over, and it goes on where it stands: it is shown what came meanwhile and what comes,
// and the cloud is asked nothing. So does another one that has seen less, and so it goes on.
func TestJoin(t *testing.T) {
	s := newSite(t)
	c, o := s.opens()
	if q := o.URL.Query(); q.Get("timeoutSeconds") != "86400" || q.Get("sendInitialEvents") != "true" ||
		q.Get("resourceVersionMatch") != "NotOlderThan" || o.UserAgent() != "kubelet" || !o.packed {
		t.Fatalf("the cloud is asked for %s, compressed: %v", o.URL, o.packed)
	}
	o.send(pod("MODIFIED", 11), pod("DELETED", 12))
	c.sees("MODIFIED 11", "DELETED 12")
	s.clock.Step(5 * time.Minute)
	c.ends(io.EOF)
	c.leaves()
	o.send(bookmark(13), pod("ADDED", 14))
	s.reaches(14)
	for _, version := range []int{12, 11, 13, 10} {
		c = s.on(version)
		for _, ev := range []string{"MODIFIED 11", "DELETED 12", "BOOKMARK 13", "ADDED 14"} {
			var at int
			_, _ = fmt.Sscan(ev[strings.Index(ev, " ")+1:], &at)
			if at > version {
				c.sees(ev)
			}
		}
		c.leaves()
	}
	c = s.on(14)
	o.send(pod("MODIFIED", 15))
	c.sees("MODIFIED 15")
	c.leaves()
	c = s.on(20) // which has seen more than the stream
	o.send(pod("MODIFIED", 16), pod("MODIFIED", 20), bookmark(20), pod("MODIFIED", 21))
	c.sees("MODIFIED 21")
	s.spared()
	s.wants("opened", 1)
	s.wants("joined", 6)
	s.wants("passed", 0)
}

// TestListAtOnce: nothing of a list is lost that comes with the answer, and each close of an answer but the first is
// nothing.
func TestListAtOnce(t *testing.T) {
	s := newSite(t)
	s.cloud.atOnce = []string{pod("ADDED", 5), pod("ADDED", 7), listed(10)}
	for range 50 {
		c := s.watch(asList)
		s.asked()
		c.sees("ADDED 5", "ADDED 7", "BOOKMARK 10")
		c.leaves()
		c.leaves()
	}
}

// TestNotJoined: the cloud is asked by each client that a stream cannot be trusted to show all, and would not be asked
// for itself.
func TestNotJoined(t *testing.T) {
	for name, before := range map[string]func(*site, *opened){
		"older than the list": func(s *site, _ *opened) {
			s.on(9).leaves()
		},
		"another server, or other credentials": func(s *site, _ *opened) {
			s.place++
			s.on(10).leaves()
		},
		"nothing has come for long": func(s *site, _ *opened) {
			s.clock.Step(quiet + time.Second)
			s.on(10).leaves()
		},
		"the stream has ended": func(s *site, o *opened) {
			o.to.finish(io.EOF)
			testkit.Until(s.t, 10*time.Second, "the end of the stream", func() bool { return s.streamOf(s.key()) == nil })
			s.on(10).leaves()
		},
		"an error came": func(s *site, o *opened) {
			o.send(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}}` + "\n")
			testkit.Until(s.t, 10*time.Second, "the error", func() bool { return s.join10() == nil })
			s.on(10).leaves()
		},
		"it went back": func(s *site, o *opened) {
			o.send(pod("MODIFIED", 20))
			o.send(pod("MODIFIED", 19))
			testkit.Until(s.t, 10*time.Second, "the end of the stream", func() bool { return s.streamOf(s.key()) == nil })
			s.on(20).leaves()
		},
		"another encoding": func(s *site, _ *opened) {
			req := ask(itsPods + "&resourceVersion=10")
			req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
			resp, err := s.RoundTrip(req)
			check(s.t, err)
			check(s.t, resp.Body.Close())
		},
		"another selector": func(s *site, _ *opened) {
			s.watch(itsPods + "&resourceVersion=10&labelSelector=a").leaves()
		},
		"another client": func(s *site, _ *opened) {
			req := ask(itsPods + "&resourceVersion=10")
			req.Header.Set("User-Agent", "kubectl")
			resp, err := s.RoundTrip(req)
			check(s.t, err)
			check(s.t, resp.Body.Close())
		},
		"the cloud does not know the node any more": func(s *site, _ *opened) {
			s.cloud.code = http.StatusUnauthorized
			resp, err := s.RoundTrip(ask("/api/v1/nodes/edge-1"))
			check(s.t, err)
			check(s.t, resp.Body.Close())
			s.cloud.code = 0
			s.on(10).leaves()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			_, o := s.opens()
			before(s, o)
			s.asked()
			s.wants("joined", 0)
		})
	}
}

// join10 tries to join at version 10.
func (s *site) join10() *reader {
	if of := s.streamOf(s.key()); of != nil {
		return of.join(s.t.Context(), time.Time{}, 10)
	}
	return nil
}

// TestShown: what ends a stream is shown to the client that is there as the cloud showed it.
func TestShown(t *testing.T) {
	s := newSite(t)
	c, o := s.opens()
	o.send(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}}` + "\n")
	c.sees("ERROR 0")
	o.to.finish(io.EOF)
	c.ends(io.EOF)
}

// TestBegin: a client goes on at a version, behind a restart of the hub. The cloud compresses that not. When it has
// brought as much as a list the hub lists, and the client goes on there: it misses nothing, and sees nothing twice.
func TestBegin(t *testing.T) {
	s := newSite(t)
	c := s.on(100)
	o := s.asked()
	if o.packed || o.URL.Query().Get("timeoutSeconds") != "300" {
		t.Fatalf("the cloud is asked for %s", o.URL)
	}
	o.send(pod("MODIFIED", 101, strings.Repeat("x", least/2)))
	c.sees("MODIFIED 101")
	s.spared()
	o.send(pod("MODIFIED", 102, strings.Repeat("x", least/2)))
	c.sees("MODIFIED 102")
	own := s.asked()
	if q := own.URL.Query(); q.Get("resourceVersion") != "102" || q.Get("sendInitialEvents") != "true" ||
		q.Get("resourceVersionMatch") != "NotOlderThan" || q.Get("timeoutSeconds") != "86400" ||
		q.Get("fieldSelector") != "spec.nodeName=edge-1" || !own.packed {
		t.Fatalf("the hub asks for %s", own.URL)
	}
	own.send(pod("ADDED", 102), pod("ADDED", 50))
	o.send(pod("MODIFIED", 103)) // the list is not complete
	c.sees("MODIFIED 103")
	own.send(pod("ADDED", 103), listed(104), pod("MODIFIED", 105), pod("MODIFIED", 106))
	testkit.Until(t, 10*time.Second, "the list", func() bool { return s.streamOf(s.key()) != nil })
	o.send(bookmark(103)) // it is behind the list
	c.sees("BOOKMARK 103")
	o.send(pod("MODIFIED", 105))
	c.sees("MODIFIED 105", "MODIFIED 106")
	own.send(pod("DELETED", 107))
	c.sees("DELETED 107")
	if err := o.sends(pod("MODIFIED", 106)); err == nil {
		t.Error("the watch that is not needed goes on")
	}
	s.clock.Step(5 * time.Minute)
	c.ends(io.EOF)
	c.leaves()
	s.spared()
	s.wants("begun", 1)
	s.wants("moved", 1)
}

// TestBeginsNot: the hub lists nothing for a client where that would cost more than it saves.
func TestBeginsNot(t *testing.T) {
	more := func(version int) string { return pod("MODIFIED", version, strings.Repeat("x", least)) }
	t.Run("the cloud compresses nothing", func(t *testing.T) {
		s := newSite(t)
		s.cloud.plain = true
		c, o := s.opens()
		o.to.finish(io.EOF)
		c.ends(io.EOF)
		c = s.on(10)
		o = s.asked()
		o.send(more(11), bookmark(12))
		c.sees("MODIFIED 11", "BOOKMARK 12")
		s.spared()
		s.place++ // who knows what another one does
		o.send(bookmark(13))
		c.sees("BOOKMARK 13")
		s.asked()
	})
	t.Run("the list is long", func(t *testing.T) {
		s := newSite(t)
		c, o := s.opens()
		s.mu.Lock()
		s.of[s.key()].listed = 3 * least
		s.mu.Unlock()
		o.to.finish(io.EOF)
		c.ends(io.EOF)
		c = s.on(10)
		o = s.asked()
		o.send(more(11), more(12))
		c.sees("MODIFIED 11", "MODIFIED 12")
		s.spared()
		o.send(more(13))
		c.sees("MODIFIED 13")
		s.asked()
	})
	// refused is a client whose watch has brought enough, when the cloud refuses the hub's list.
	refused := func(t *testing.T, code int) (*site, *client, *opened) {
		s := newSite(t)
		c := s.on(10)
		o := s.asked()
		s.cloud.code = code
		o.send(more(11))
		c.sees("MODIFIED 11")
		testkit.Until(t, 10*time.Second, "the refusal", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return !s.of[s.key()].begins
		})
		s.cloud.code = 0
		return s, c, o
	}
	t.Run("the cloud refuses", func(t *testing.T) {
		s, c, o := refused(t, http.StatusServiceUnavailable)
		o.send(bookmark(12))
		c.sees("BOOKMARK 12")
		s.spared()
		o.send(more(13)) // it is tried again when the same was brought again
		c.sees("MODIFIED 13")
		s.asked()
	})
	t.Run("the cloud knows no streaming lists", func(t *testing.T) {
		s, c, o := refused(t, http.StatusUnprocessableEntity)
		o.send(more(12), more(13))
		c.sees("MODIFIED 12", "MODIFIED 13")
		s.spared()
	})
}

// TestLinger: a stream ends when its client has not come back.
func TestLinger(t *testing.T) {
	s := newSite(t)
	c, o := s.opens()
	c.leaves()
	s.clock.Step(linger - time.Second)
	c = s.on(10)
	s.clock.Step(linger - time.Second)
	c.leaves()
	s.clock.Step(linger - time.Second)
	if o.Context().Err() != nil {
		t.Fatal("the stream has ended")
	}
	s.clock.Step(time.Second)
	o.gone()
	s.spared()
}

// TestUnfinished: a stream whose client leaves before the list is complete ends. So does one that a later list takes
// the place of.
func TestUnfinished(t *testing.T) {
	s := newSite(t)
	c := s.watch(asList)
	o := s.asked()
	o.send(pod("ADDED", 5))
	c.sees("ADDED 5")
	c.leaves()
	o.gone()

	c, first := s.opens()
	_, second := s.opens()
	if first.Context().Err() != nil {
		t.Fatal("a client is taken its stream")
	}
	c.leaves()
	first.gone()
	c = s.on(10)
	second.send(pod("MODIFIED", 11))
	c.sees("MODIFIED 11")
}

// TestRefused: what the cloud answers to a streaming list, other than with one, is the client's.
func TestRefused(t *testing.T) {
	s := newSite(t)
	s.cloud.code = http.StatusGone
	resp, err := s.RoundTrip(ask(asList))
	check(t, err)
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	check(t, resp.Body.Close())
	if resp.StatusCode != http.StatusGone || string(body) != "no" {
		t.Fatalf("the answer is %d %s", resp.StatusCode, body)
	}
	s.cloud.code = 0
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.RoundTrip(ask(asList).WithContext(ctx)); err == nil {
		t.Fatal("a client that has left is answered")
	}
}

// TestEnds: with the hub all streams end, and none begins.
func TestEnds(t *testing.T) {
	s := newSite(t)
	c, o := s.opens()
	s.stop()
	o.gone()
	c.ends(context.Canceled)
}

// TestBounded: what is kept of questions is bounded, and those of which no stream is open make room.
func TestBounded(t *testing.T) {
	s := newSite(t)
	for i := range 3 * maxKept {
		c := s.watch(fmt.Sprintf("%s&labelSelector=n%d", asList, i))
		o := s.asked()
		o.send(listed(10))
		c.sees("BOOKMARK 10")
		if i%2 == 0 {
			o.to.finish(io.EOF)
			c.ends(io.EOF)
		}
		s.mu.Lock()
		if n := len(s.of); n > maxKept {
			t.Errorf("%d questions are kept", n)
		}
		s.mu.Unlock()
	}
}
