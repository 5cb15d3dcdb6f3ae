package uplink

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	every = time.Minute // how often it is looked whether the hub's own certificate for the cloud has come or ended
	// of a certificate that the cloud has refused: an apiserver that starts may refuse what it will take.
	rest = 5 * time.Minute
)

// UserStatus is who the hub is at the cloud, for what it reads itself.
type UserStatus struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"` // why it is not its own user
}

// UserConfig is what a User is made of.
type UserConfig struct {
	Name, Node string      // the hub's own, and its node's
	OfNode     Certificate // the node's certificate
	Own        Certificate // nil: there is none, and none comes
	Shows      Bearer      // what the node shows beside it; nil: nothing
	Now        func() time.Time
	Clock      clock.WithTicker
	Logger     *slog.Logger
}

// User is who the hub is at the cloud: a user of its own, and its node while it has no certificate of that user which
// still lives. The node's has no right to what relays hold, unless somebody granted it; what a relay may not read is
// the cloud's to answer.
type User struct {
	UserConfig
	look   chan struct{}
	said   string // of Run alone
	follow []func()

	refused atomic.Pointer[refusal]
}

// refusal is that the cloud has not taken a certificate.
type refusal struct {
	of    *tls.Certificate
	until time.Time // then it is tried again
}

// NewUser makes a User of what certificates there are.
func NewUser(c UserConfig) *User { return &User{UserConfig: c, look: make(chan struct{}, 1)} }

// Get implements uplink.Certificate.
func (a *User) Get() *tls.Certificate {
	if own, _ := a.usable(); own != nil {
		return own
	}
	return a.OfNode.Get()
}

// Token implements uplink.Bearer: the node's, while the hub has no certificate of its own.
func (a *User) Token(ctx context.Context) (string, error) {
	if own, _ := a.usable(); own != nil || a.Shows == nil {
		return "", nil
	}
	return a.Shows.Token(ctx)
}

// Counts implements uplink.Bearer.
func (a *User) Counts() bool {
	own, _ := a.usable()
	return own != nil || a.Shows != nil && a.Shows.Counts()
}

// Refused implements uplink.Bearer. A certificate that is refused is not shown for a while: the node's credential is.
func (a *User) Refused(token string) {
	own, _ := a.usable()
	switch {
	case a.Shows == nil:
	case token != "":
		a.Shows.Refused(token)
	case own != nil:
		a.refused.Store(&refusal{own, a.Now().Add(rest)})
		a.Logger.Warn("the cloud does not take a certificate; what the node shows beside it goes on", "user", a.Name,
			"again-in", rest)
		a.Poke()
	}
}

// usable is the own certificate, or why it cannot be used.
func (a *User) usable() (own *tls.Certificate, why string) {
	if a.Own == nil {
		return nil, "it has none of its own"
	}
	own = a.Own.Get()
	switch {
	case own == nil:
		return nil, "its own is not there yet"
	case own.Leaf != nil && a.Now().After(own.Leaf.NotAfter):
		return nil, "its own has ended"
	}
	if r := a.refused.Load(); r != nil && r.of == own && a.Now().Before(r.until) {
		return nil, "the cloud has refused its own"
	}
	return own, ""
}

// Is tells who the hub is now, and why not itself.
func (a *User) Is() (user, why string) {
	if _, why := a.usable(); why != "" {
		return a.Node, why
	}
	return a.Name, ""
}

// Poke says that there is another certificate. It never blocks.
func (a *User) Poke() {
	a.changed()
	select {
	case a.look <- struct{}{}:
	default:
	}
}

// Follow has f called when it is another user from now on, or has another certificate. It must be called before Run.
func (a *User) Follow(f func()) { a.follow = append(a.follow, f) }

func (a *User) changed() {
	for _, f := range a.follow {
		f()
	}
}

// Run follows what the hub is until ctx ends, and tells of it. looks is called at every look.
func (a *User) Run(ctx context.Context, looks func()) error {
	tick := a.Clock.NewTicker(every)
	defer tick.Stop()
	for poked := false; ; {
		a.tell(poked)
		looks()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
			poked = false
		case <-a.look:
			poked = true
		}
	}
}

// tell logs who the hub is, once for each change. Connections that were opened as somebody else take no new requests
// then; poked, it was said already. Said twice it would leave streams on a connection that new requests do not take,
// and what proves many streams by one request proves none of those.
func (a *User) tell(poked bool) {
	user, why := a.Is()
	former := a.said
	a.said = user + why
	switch {
	case former == user+why:
		return
	case why == "":
		a.Logger.Info("the hub is a user of its own at the cloud", "user", user)
	default:
		a.Logger.Warn("the hub is its node at the cloud, which may not read what relays hold unless that was granted",
			"user", user, "why", why)
	}
	if former != "" && !poked {
		a.changed()
	}
}
