package exchange

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/contract"
)

// Bounds of CallBacks.
const (
	maxCallBackAsk = 1 << 10 // bytes of a request
	maxCallers     = 500
	maxCalls       = 8 // at once
	// MaxTold bounds the members in an answer.
	MaxTold = 3
	// CallBackRest lies between two calls of one hub.
	CallBackRest = 10 * time.Second
	// CallBackSilence is how long a caller may say nothing: hubs ask each connectivity.Usual.
	CallBackSilence = 3 * connectivity.Usual
)

// CallBackAsk is where a hub is.
type CallBackAsk struct {
	Address string `json:"address"` // of its port for the pool; contract.PoolAddressReverse: it cannot be called
}

// CallBackAnswer is what the desk found.
type CallBackAnswer struct {
	Called  bool     `json:"called,omitempty"`
	Cause   string   `json:"cause,omitempty"` // why the call failed, in one word of package digest; "": it did not
	Members []Member `json:"members,omitempty"`
}

// Member is another hub of the pool.
type Member struct {
	Node    string `json:"node"`
	Address string `json:"address"`
}

// CallBacks is where a hub has its pool call it back. It is safe for concurrent use.
type CallBacks struct {
	// Call opens a connection to the hub of a node, and closes it. nil: the one who has the desk calls no hub.
	Call  func(ctx context.Context, node, address string) (connectivity.Stage, error)
	Clock clock.PassiveClock
	// Within is for one call: less than the one that asked waits for the answer. 0: half of connectivity.Patience.
	Within time.Duration

	mu      sync.Mutex
	members map[string]*caller
	calls   int
}

type caller struct {
	address string
	heard   time.Time
	called  time.Time
	calling bool
}

// Exchange takes where a hub is, calls it, and answers.
func (d *CallBacks) Exchange(ctx context.Context, node string, a CallBackAsk) (out CallBackAnswer, err error) {
	_, reverse, err := contract.ParsePoolAddress(a.Address)
	if err != nil {
		return out, fmt.Errorf("address %.80q: want the IP address of a node and a port", a.Address)
	}
	if reverse {
		a.Address = ""
	}
	told, call := d.enter(node, a.Address)
	if out.Members = told; !call {
		return out, nil
	}
	defer d.leave(node)
	calling, cancel := context.WithTimeout(ctx, cmp.Or(d.Within, connectivity.Patience/2))
	defer cancel()
	out.Called = true
	if stage, err := d.Call(calling, node, a.Address); err != nil {
		out.Cause = connectivity.Cause(stage, err)
	}
	return out, nil
}

// enter notes a caller, and reports whether it may be called.
func (d *CallBacks) enter(node, address string) (told []Member, call bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Clock.Now()
	maps.DeleteFunc(d.members, func(_ string, m *caller) bool { return !m.calling && now.Sub(m.heard) > CallBackSilence })
	m := d.members[node]
	if m == nil {
		if len(d.members) >= maxCallers {
			return nil, false
		}
		if d.members == nil {
			d.members = map[string]*caller{}
		}
		m = &caller{called: now.Add(-CallBackRest)}
		d.members[node] = m
	}
	m.address, m.heard = address, now
	told = d.after(node)
	if d.Call == nil || address == "" || m.calling || now.Sub(m.called) < CallBackRest || d.calls >= maxCalls {
		return told, false
	}
	m.calling, m.called = true, now
	d.calls++
	return told, true
}

// after are the members behind a node by name, from the first on again.
func (d *CallBacks) after(node string) (told []Member) {
	names := slices.Sorted(maps.Keys(d.members))
	at := slices.Index(names, node)
	for i := 1; i < len(names) && len(told) < MaxTold; i++ {
		if name := names[(at+i)%len(names)]; d.members[name].address != "" {
			told = append(told, Member{name, d.members[name].address})
		}
	}
	return told
}

func (d *CallBacks) leave(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
	d.members[node].calling = false
}

// Handler serves it. Only who asks from this machine may name an address of each machine. node is the node whose hub
// asks, "" if somebody else does.
func (d *CallBacks) Handler(node func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		Handler(node, "hubs ask to be called back, and nobody else", maxCallBackAsk,
			func(node string, a CallBackAsk) (CallBackAnswer, error) {
				if contract.IsLoopback(a.Address) && !contract.IsLoopback(req.RemoteAddr) {
					return CallBackAnswer{}, fmt.Errorf("address %.80q is one of each machine: want one of the node", a.Address)
				}
				return d.Exchange(req.Context(), node, a)
			}).ServeHTTP(w, req)
	})
}
