package togate

import (
	"errors"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// due is a time after which a gate that rests that long is asked, however the hub dices.
func due(rest time.Duration) time.Duration { return rest + rest/4 + time.Second }

// TestNoGate: a hub that is told of no gate reads at kube-apiserver, and what fails there is no matter of a gate.
func TestNoGate(t *testing.T) {
	h := newHub(t, false)
	h.reads(h.kube, endpoints, services)
	for _, name := range []string{endpoints, services, ""} {
		if up := h.way.Upstream(name); up != nil {
			t.Errorf("%q is read at %s", name, up.URL)
		}
	}
	h.way.Failed(h.sources.Cloud, endpoints, errors.New("kube-apiserver is gone"))
	h.way.Failed(nil, endpoints, errors.New("nobody is gone"))
	if h.way.decides.Rests() || h.way.decides.Doubtful() {
		t.Error("a gate that is not there rests, or is doubted")
	}
	h.end()
	if h.gate.callers() != "" {
		t.Errorf("a gate was asked by %s of which nobody told", h.gate.callers())
	}
}

// TestTold: a gate of which the pool is told is taken, at the start and later, by the hub's own certificate, and left
// when the pool is told of it no more. The relay goes on at its version: nothing is listed again.
func TestTold(t *testing.T) {
	for about, first := range map[string]bool{"from the start": true, "later": false} {
		t.Run(about, func(t *testing.T) {
			h := newHub(t, first)
			if !first {
				h.reads(h.kube, endpoints, services)
				h.tell(h.gate.entry())
			}
			h.reads(h.gate, endpoints, services)
			up := h.way.Upstream(endpoints)
			if up.Name != source.Gate || !up.Delta || !up.Progress || up.Consistent || up.Gzip {
				t.Errorf("%+v", up)
			}
			if got := h.gate.callers(); got != "hub-1" {
				t.Errorf("the gate was asked by %s", got)
			}
			h.tell(directory.Gate{})
			h.reads(h.kube, endpoints, services)
			if h.way.Upstream(endpoints) != nil {
				t.Error("a gate is taken of which nobody tells any more")
			}
			h.way.Failed(up, endpoints, errors.New("what was under way at it has failed"))
			h.tell(h.gate.entry())
			h.reads(h.gate, endpoints, services)
			h.end()
			for _, f := range h.sources.All() {
				if n := f.Status().Lists.Total(); n != 1 {
					t.Errorf("%s was listed %d times", f.Resource, n)
				}
			}
			if h.way.Upstream(endpoints) != nil {
				t.Error("a gate is taken by a hub that has ended")
			}
		})
	}
}

// TestAnotherGate: a hub goes to the gate of which the pool is told last, though the one before serves still. That one
// rests and lacks nothing any more.
func TestAnotherGate(t *testing.T) {
	h := newHub(t, true)
	h.reads(h.gate, endpoints, services)
	former := h.way.Upstream(endpoints)
	h.gate.refuse(http.StatusNotFound, services)
	h.reads(h.kube, services)
	second := newSite(t)
	h.sites = append(h.sites, second)
	h.tell(second.entry())
	h.reads(second, endpoints, services)
	h.way.Failed(former, endpoints, errors.New("late news of the former gate"))
	if h.way.Upstream(endpoints) == nil {
		t.Error("what failed at the former gate counts against the new one")
	}
	second.refuse(http.StatusServiceUnavailable, endpoints, services)
	h.reads(h.kube, endpoints, services)
	h.gate.refuse(0, services)
	h.tell(h.gate.entry())
	h.reads(h.gate, endpoints, services)
}

// TestStranger: a server that cannot prove to be the gate is not read, nor is it shown the hub's certificate.
func TestStranger(t *testing.T) {
	h := newHub(t, false)
	h.tell(directory.Gate{Server: h.gate.URL, Authorities: string(h.pool.Authority.CertPEM())})
	h.reads(h.kube, endpoints, services)
	h.eventually("the stranger to be left alone", func() bool {
		h.way.mu.Lock()
		defer h.way.mu.Unlock()
		return h.way.decides.Rests()
	})
	h.passes(due(member.GateRest))
	h.eventually("it to be asked in vain", func() bool {
		h.way.mu.Lock()
		defer h.way.mu.Unlock()
		in, rests := h.way.decides.Asks(h.clock.Now(), time.Time{})
		return rests && in > 0
	})
	h.end()
	if h.gate.callers() != "" || h.gate.asked.Load() != 0 {
		t.Errorf("it was asked %d times, by %s", h.gate.asked.Load(), h.gate.callers())
	}
}

// TestLacks: what a gate does not have, or not for this hub, is read at kube-apiserver, and all else at the gate. It is
// asked for again after a time, and nobody has to ask whether the gate is ready.
func TestLacks(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			h := newHub(t, true)
			h.reads(h.gate, endpoints, services)
			h.gate.refuse(code, services)
			h.reads(h.kube, services)
			h.reads(h.gate, endpoints)
			if h.way.Upstream(services) != nil || h.way.Upstream(endpoints) == nil {
				t.Error("the gate is taken for what it lacks, or not for what it has")
			}
			h.gate.refuse(0, services)
			for at := due(looks); ; at += due(looks) {
				h.passes(due(looks))
				if at >= member.GateLacks {
					break
				}
				h.reads(h.kube, services)
			}
			h.reads(h.gate, endpoints, services)
			h.gate.refuse(0, services)
			if h.gate.asked.Load() != 0 {
				t.Error("the gate was asked whether it is ready")
			}
		})
	}
}

// TestForgotten: who has a version that the gate has forgotten goes on at kube-apiserver for a moment, and comes back.
// A hub that reads too much does so at the gate, too. Neither is a failure of the gate.
func TestForgotten(t *testing.T) {
	h := newHub(t, true)
	h.reads(h.gate, endpoints, services)
	h.way.Failed(h.way.Upstream(endpoints), endpoints,
		&hop.StatusError{Code: http.StatusTooManyRequests, RetryAfter: time.Hour})
	if h.way.Upstream(endpoints) == nil || h.way.Upstream(services) == nil {
		t.Error("the gate is left")
	}
	h.way.Failed(h.way.Upstream(endpoints), endpoints, &hop.StatusError{Code: http.StatusGone})
	h.reads(h.kube, endpoints)
	h.reads(h.gate, services)
	h.passes(member.GateDetour)
	h.reads(h.gate, endpoints, services)
	if h.gate.asked.Load() != 0 {
		t.Error("the gate was asked whether it is ready")
	}

	// Nobody remembers: the gate says in the fewest bytes what differs.
	h.way.Failed(h.way.Upstream(endpoints), endpoints, &hop.StatusError{Code: http.StatusGone})
	h.reads(h.kube, endpoints)
	h.way.Failed(&hop.Upstream{Consistent: true}, services, &hop.StatusError{Code: http.StatusGone})
	h.reads(h.kube, endpoints)
	h.way.Failed(&hop.Upstream{Consistent: true}, endpoints, &hop.StatusError{Code: http.StatusGone})
	h.reads(h.gate, endpoints, services)
}

// TestFailed: with a gate that does not serve all goes on at kube-apiserver. The gate is asked whether it is ready once
// it has rested, and read again when it says so.
func TestFailed(t *testing.T) {
	for about, fails := range map[string]func(*site){
		"503": func(x *site) { x.refuse(http.StatusServiceUnavailable, endpoints, services, "") },
		"500": func(x *site) { x.refuse(http.StatusInternalServerError, endpoints, services, "") },
		"401": func(x *site) { x.refuse(http.StatusUnauthorized, endpoints, services, "") },
		"one of them": func(x *site) {
			x.refuse(http.StatusServiceUnavailable, endpoints)
			x.refuse(http.StatusServiceUnavailable, "")
		},
		"no answer": func(x *site) {
			x.refuse(http.StatusServiceUnavailable, "")
			x.CloseClientConnections()
		},
	} {
		t.Run(about, func(t *testing.T) {
			h := newHub(t, true)
			h.reads(h.gate, endpoints, services)
			fails(h.gate)
			h.reads(h.kube, endpoints, services)
			first := h.gate.asked.Load() // one that gives no answer is asked at once
			h.passes(member.GateRest - time.Second)
			if n := h.gate.asked.Load(); n != first {
				t.Errorf("asked %d times while it rests", n-first)
			}
			h.passes(due(member.GateRest))
			h.eventually("it to be asked", func() bool { return h.gate.asked.Load() == first+1 })
			h.reads(h.kube, endpoints, services)
			h.gate.refuse(0, endpoints, services, "")
			h.passes(due(member.GateRest))
			h.reads(h.gate, endpoints, services)
			if n := h.gate.asked.Load() - first; n != 2 {
				t.Errorf("asked %d times", n)
			}
			h.end()
			for _, f := range h.sources.All() {
				if n := f.Status().Lists.Total(); n != 1 {
					t.Errorf("%s was listed %d times", f.Resource, n)
				}
			}
		})
	}
}

// TestSpread: hubs whose gate fails at the same time leave it one after the other.
func TestSpread(t *testing.T) {
	const spread = 3 * time.Second
	for about, fails := range map[string]func(*site){
		"503": func(x *site) { x.refuse(http.StatusServiceUnavailable, endpoints, services, "") },
		"no answer": func(x *site) {
			x.refuse(http.StatusServiceUnavailable, "", endpoints, services)
			x.CloseClientConnections()
		},
	} {
		t.Run(about, func(t *testing.T) {
			h := newSpreadHub(t, true, spread)
			h.reads(h.gate, endpoints, services)
			fails(h.gate)
			h.eventually("the gate to be left", func() bool { return h.way.Upstream(endpoints) == nil })
			n := h.gate.refused(endpoints)
			h.eventually("it to be tried again", func() bool { return h.kube.reads(endpoints) || h.gate.refused(endpoints) > n })
			if h.kube.reads(endpoints) || h.kube.reads(services) {
				t.Error("kube-apiserver is read at once")
			}
			h.passes(spread)
			h.reads(h.kube, endpoints, services)
		})
	}
	var parts [3]int
	clock := clocktesting.NewFakeClock(time.Now())
	for range 300 {
		g := &Gate{Config: Config{Spread: spread, Clock: clock}}
		g.leave()
		parts[g.leaves.Sub(clock.Now())/time.Second]++
	}
	for second, n := range parts {
		if n < 50 {
			t.Errorf("%d of 300 hubs leave in second %d", n, second)
		}
	}
}

// TestCloudReturns: a gate that failed while the cloud was away is asked when the cloud is back, and not after a rest;
// before that nobody asks it.
func TestCloudReturns(t *testing.T) {
	h := newHub(t, true)
	h.reads(h.gate, endpoints, services)
	h.kube.refuse(http.StatusServiceUnavailable, "", endpoints, services)
	h.eventually("the cloud to be away", func() bool { return !h.cloud.Healthy() })
	h.gate.refuse(http.StatusServiceUnavailable, endpoints, services)
	h.eventually("the gate to be left", func() bool { return h.way.Upstream(endpoints) == nil })
	h.passes(due(member.GateRest))
	h.eventually("the hub to wait again", h.clock.HasWaiters)
	h.gate.refuse(0, endpoints, services)
	if n := h.gate.asked.Load(); n != 0 {
		t.Errorf("asked %d times although the cloud is away", n)
	}
	h.kube.refuse(0, "", endpoints, services)
	h.reads(h.gate, endpoints, services)
	if n := h.gate.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestCertificate: a hub that gets another certificate shows that, and what is under way goes on.
func TestCertificate(t *testing.T) {
	h := newHub(t, true)
	h.reads(h.gate, endpoints, services)
	opened := h.sources.Named(endpoints).Status().Watches
	up := h.way.Upstream(endpoints)
	h.show("hub-2")
	h.get(up, "livez")
	if got := h.gate.callers(); got != "hub-1" {
		t.Errorf("before it was looked: %s", got)
	}
	h.passes(due(looks))
	h.eventually("the other certificate to be shown", func() bool {
		h.get(up, "livez")
		return h.gate.callers() == "hub-1,hub-2"
	})
	if now := h.way.Upstream(endpoints); now != up {
		t.Error("the gate is another one")
	}
	h.reads(h.gate, endpoints, services)
	if n := h.sources.Named(endpoints).Status().Watches; n != opened {
		t.Errorf("the watch was opened %d times more", n-opened)
	}
}
