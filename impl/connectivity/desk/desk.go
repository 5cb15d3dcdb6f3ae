package desk

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
	"github.com/weir-edge/weir/impl/exchange"
)

// Bounds of a desk.
const (
	maxAsk     = 1 << 10 // bytes of a request
	maxMembers = 500
	maxCalls   = 8 // at once
	// MaxTold bounds the members in an answer.
	MaxTold = 3
	// Rest lies between two calls of one hub.
	Rest = 10 * time.Second
	// Silence is how long a member may say nothing: hubs ask each connectivity.Usual.
	Silence = 3 * connectivity.Usual
)

// Ask is where a hub is.
type Ask struct {
	Address string `json:"address"` // of its port for the pool; contract.PoolAddressReverse: it cannot be called
}

// Answer is what the desk found.
type Answer struct {
	Called  bool     `json:"called,omitempty"`
	Cause   string   `json:"cause,omitempty"` // why the call failed, in one word of package digest; "": it did not
	Members []Member `json:"members,omitempty"`
}

// Member is another hub of the pool.
type Member struct {
	Node    string `json:"node"`
	Address string `json:"address"`
}

// Desk is one that several may use.
type Desk struct {
	// Call opens a connection to the hub of a node, and closes it. nil: the one who has the desk calls no hub.
	Call  func(ctx context.Context, node, address string) (connectivity.Stage, error)
	Clock clock.PassiveClock
	// Within is for one call: less than the one that asked waits for the answer. 0: half of connectivity.Patience.
	Within time.Duration

	mu      sync.Mutex
	members map[string]*member
	calls   int
}

type member struct {
	address string
	heard   time.Time
	called  time.Time
	calling bool
}

// Exchange takes where a hub is, calls it, and answers.
func (d *Desk) Exchange(ctx context.Context, node string, a Ask) (out Answer, err error) {
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

// enter notes a member, and reports whether it may be called.
func (d *Desk) enter(node, address string) (told []Member, call bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Clock.Now()
	maps.DeleteFunc(d.members, func(_ string, m *member) bool { return !m.calling && now.Sub(m.heard) > Silence })
	m := d.members[node]
	if m == nil {
		if len(d.members) >= maxMembers {
			return nil, false
		}
		if d.members == nil {
			d.members = map[string]*member{}
		}
		m = &member{called: now.Add(-Rest)}
		d.members[node] = m
	}
	m.address, m.heard = address, now
	told = d.after(node)
	if d.Call == nil || address == "" || m.calling || now.Sub(m.called) < Rest || d.calls >= maxCalls {
		return told, false
	}
	m.calling, m.called = true, now
	d.calls++
	return told, true
}

// after are the members behind a node by name, from the first on again.
func (d *Desk) after(node string) (told []Member) {
	names := slices.Sorted(maps.Keys(d.members))
	at := slices.Index(names, node)
	for i := 1; i < len(names) && len(told) < MaxTold; i++ {
		if name := names[(at+i)%len(names)]; d.members[name].address != "" {
			told = append(told, Member{name, d.members[name].address})
		}
	}
	return told
}

func (d *Desk) leave(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
	d.members[node].calling = false
}

// Handler serves it. Only who asks from this machine may name an address of each machine. node is the node whose hub
// asks, "" if somebody else does.
func (d *Desk) Handler(node func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		exchange.Handler(node, "hubs ask to be called back, and nobody else", maxAsk,
			func(node string, a Ask) (Answer, error) {
				if contract.IsLoopback(a.Address) && !contract.IsLoopback(req.RemoteAddr) {
					return Answer{}, fmt.Errorf("address %.80q is one of each machine: want one of the node", a.Address)
				}
				return d.Exchange(req.Context(), node, a)
			}).ServeHTTP(w, req)
	})
}
