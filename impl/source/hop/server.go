package hop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/request"
)

// maxShown bounds what a status may be.
const maxShown = 1 << 20

// Shown is what somebody says of one of the relays that others may pull from.
type Shown struct {
	Resource   string  `json:"resource"`
	Synced     bool    `json:"synced"`
	Version    uint64  `json:"version"`
	History    uint64  `json:"history"`
	Restored   bool    `json:"restored"`
	Denied     string  `json:"denied,omitempty"`
	AgeSeconds float64 `json:"ageSeconds"` // since the last sign of its source, -1 for never
	Ready      bool    `json:"ready"`      // Server.Vouch says so
}

// ServerStatus is what a Server says of itself at contract.StatusPath.
type ServerStatus struct {
	Node      string  `json:"node"`
	Ready     bool    `json:"ready"` // what is shown may be relied on: a leader hub that hears the cloud
	Resources []Shown `json:"resources"`
	// that may be read here and that nobody reads.
	Idle []string `json:"idleResources,omitempty"`
}

// Scope is what may be relayed.
type Scope interface {
	Read(resource string) (r *relay.Relay, done func())
	Idle() []string
}

// Server shows relays to those who pull from them: it is the other end of an Upstream. Callers have been authorized;
// each sees all of a resource, since that is what a relay takes. Nothing else than what the relays hold is shown: one
// that holds nothing yet lets wait, one that is denied says so.
type Server struct {
	*http.ServeMux
	clock clock.PassiveClock
	// Vouch, if set before it serves, reports whether a relay is fresh at a leader hub that hears the cloud; nil: one that
	// would begin now.
	Vouch func(*relay.Relay) bool
	// Scope, if set before it serves, is what may be relayed, a *scope.Scope: who asks for that has it relayed.
	Scope Scope

	mu    sync.Mutex
	leant int       // answers to contract.PulsePath that last
	since time.Time // since when there are some, or none
}

// NewServer shows the relays of a node, those that there are when it is asked.
func NewServer(node string, relays func() []*relay.Relay, c clock.PassiveClock) *Server {
	s := &Server{ServeMux: http.NewServeMux(), clock: c, since: c.Now()}
	s.HandleFunc("GET "+contract.StatusPath, func(w http.ResponseWriter, _ *http.Request) {
		st := ServerStatus{Node: node}
		some, stale, denied := false, false, false
		for _, r := range relays() {
			shown := show(r, c.Now())
			shown.Ready = s.Vouch != nil && s.Vouch(r)
			denied = denied || shown.Denied != ""
			some, stale = some || shown.Ready, stale || !shown.Ready && shown.Denied == "" && !r.Status().Joins
			st.Resources = append(st.Resources, shown)
		}
		if s.Scope != nil {
			st.Idle = s.Scope.Idle()
		}
		st.Ready = !stale && (some || !denied && s.Vouch != nil && s.Vouch(nil))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(st)
	})
	s.HandleFunc("GET "+contract.PulsePath, s.pulse)
	s.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) { // 404 would say that the cloud does not have it
		if asked := request.Parse(req); asked.Reads() && asked.Verb != "get" {
			r, done := s.read(asked.Resource.String(), relays)
			defer done()
			if r != nil && req.URL.Path == r.Resource().Path()+"/"+r.Resource().Resource {
				s.answerPull(w, req, r)
				return
			}
		}
		rest.WriteError(w, req,
			apierrors.NewServiceUnavailable("this hub does not show "+req.URL.Path+": what it relays does not have it"))
	})
	return s
}

// pulse lasts as long as the connection does: who opened it knows by that whether this process lives, and this one
// whether it is read.
func (s *Server) pulse(w http.ResponseWriter, req *http.Request) {
	s.leans(1)
	defer s.leans(-1)
	w.WriteHeader(http.StatusOK)
	if http.NewResponseController(w).Flush() == nil {
		<-req.Context().Done()
	}
}

func (s *Server) leans(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.leant; was == 0 || was+n == 0 {
		s.since = s.clock.Now()
	}
	s.leant += n
}

// Read reports whether somebody leans on this server, and since when that is so.
func (s *Server) Read() (read bool, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leant > 0, s.since
}

// read notes that a resource is read, until done is called, and gives its relay, nil if there is none.
func (s *Server) read(resource string, relays func() []*relay.Relay) (r *relay.Relay, done func()) {
	if s.Scope != nil {
		return s.Scope.Read(resource)
	}
	for _, r := range relays() {
		if r.Resource().String() == resource {
			return r, func() {}
		}
	}
	return nil, func() {}
}

func (s *Server) answerPull(w http.ResponseWriter, req *http.Request, r *relay.Relay) {
	if r.WaitUntil(req.Context(), func() bool { return r.Status().Synced || r.Denied() != nil }) != nil {
		return
	}
	if st := r.Status(); st.Synced {
		age, _ := st.Age(s.clock.Now())
		w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
	}
	(&rest.Handler{Source: r}).ServeHTTP(w, req)
}

func show(r *relay.Relay, now time.Time) Shown {
	s, age := r.Status(), -1.0
	if a, ok := s.Age(now); ok {
		age = a.Truncate(time.Millisecond).Seconds()
	}
	return Shown{
		Resource: r.Resource().String(), Synced: s.Synced, Version: s.Version, History: s.History.Number,
		Restored: s.Restored, Denied: s.Denied, AgeSeconds: age,
	}
}

// Shown asks a Server what it has.
func (u *Upstream) Shown(ctx context.Context) ([]Shown, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL.JoinPath(contract.StatusPath).String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := u.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxShown))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	}
	var s ServerStatus
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, fmt.Errorf("read what %s shows: %w", u.Name, err)
	}
	return s.Resources, nil
}
