package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/reverse"
)

const (
	reviews = 5 * time.Minute  // how often it is asked whether a hub may still have its connection
	answers = 10 * time.Second // kube-apiserver has to answer
)

// wayInConfig is what a Way is made of.
type wayInConfig struct {
	Cluster *rest.Config // kube-apiserver, as the gate
	Port    int          // of this gate, which is never dialed
	Clock   clock.WithTicker
	Logger  *slog.Logger
}

// wayIn is the way into pools. It is safe for concurrent use.
type wayIn struct {
	wayInConfig
	places *places
	ways   *reverse.Ways
	front  *reverse.Front
	authz  authorizer.Authorizer // set by Around
}

// newWayIn makes one. Run has to be called, and ends what it carries.
func newWayIn(c wayInConfig) (*wayIn, error) {
	x := &wayIn{wayInConfig: c}
	var err error
	if x.places, err = newPlaces(c.Cluster); err != nil {
		return nil, err
	}
	if x.ways, err = reverse.NewWays(reverse.WaysConfig{Clock: c.Clock, Logger: c.Logger}); err != nil {
		return nil, err
	}
	self, err := own(c.Port)
	if err != nil {
		return nil, err
	}
	x.front, err = reverse.NewFront(reverse.FrontConfig{
		Ways: x.ways, Authorize: x.authorize, Place: x.places.of, Self: self,
		Straight: func(netip.AddrPort) error { return nil }, // authorize has asked
		Clock:    c.Clock, Logger: c.Logger,
	})
	return x, err
}

// own are the addresses of this machine, at the port of the gate.
func own(port int) (all []netip.AddrPort, err error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("the addresses of this machine: %w", err)
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, netip.AddrPortFrom(p.Addr().Unmap(), uint16(port)))
		}
	}
	return all, nil
}

// Run follows what is of which pool, until ctx ends. Then it ends all connections.
func (x *wayIn) Run(ctx context.Context) error {
	defer x.ways.Close()
	defer x.front.Close()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return x.places.run(ctx) })
	all.Go(func() error {
		for process.Pause(ctx, x.Clock, reviews); ctx.Err() == nil; process.Pause(ctx, x.Clock, reviews) {
			x.review(ctx)
		}
		return nil
	})
	return all.Wait()
}

// isLong reports whether an answer to a request may take long.
func isLong(req *http.Request) bool {
	return req.Method == http.MethodConnect || req.URL.Path == contract.ReversePath
}

// Around returns what answers the requests of the way in behind filters, and all others by next. filters is what puts
// the filters of the generic server around a handler, and authz the authorizer of these.
func (x *wayIn) Around(next http.Handler, authz authorizer.Authorizer, filters func(http.Handler) http.Handler,
) http.Handler {
	x.authz = authz
	inside := filters(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Method == http.MethodConnect:
			x.front.ServeHTTP(w, req)
		case req.URL.Path == contract.ReversePath:
			x.admit(w, req)
		default:
			next.ServeHTTP(w, req)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodConnect && req.URL.Host != "" { // who takes this for a proxy gets no metrics of its own
			http.Error(w, "want CONNECT: this is no proxy for plain HTTP", http.StatusBadRequest)
			return
		}
		if req.Method == http.MethodConnect {
			req.URL.Path = contract.ConnectPath // what authorization is asked about
		}
		inside.ServeHTTP(w, req)
	})
}

// admit takes the connection of a hub.
func (x *wayIn) admit(w http.ResponseWriter, req *http.Request) {
	u, ok := genericrequest.UserFrom(req.Context())
	if !ok {
		http.Error(w, "who calls is not known", http.StatusUnauthorized)
		return
	}
	rest, isHub := strings.CutPrefix(u.GetName(), contract.HubUserPrefix)
	pool, node, ok := strings.Cut(rest, ":")
	if !isHub || !ok || pool == "" || node == "" {
		http.Error(w, "want the own user of a hub, "+contract.HubUserPrefix+"<pool>:<node>", http.StatusForbidden)
		return
	}
	x.ways.Admit(w, req, pool, node)
}

// Dial opens a connection to an address of a node of a pool.
func (x *wayIn) Dial(ctx context.Context, pool, node, address string) (net.Conn, error) {
	return x.ways.Dial(ctx, reverse.Place{Pool: pool, Node: node}, address)
}

// review ends connections of hubs that may not have them any more, as when their nodes were deleted.
func (x *wayIn) review(ctx context.Context) {
	for _, w := range x.ways.State().Ways {
		hub := &user.DefaultInfo{
			Name: contract.HubUserPrefix + w.Pool + ":" + w.Node, Groups: []string{user.AllAuthenticated},
		}
		may, err := x.ask(ctx, hub, "post", contract.ReversePath)
		if err == nil && may != authorizer.DecisionAllow {
			x.Logger.Warn("a hub may not have its connection any more", "pool", w.Pool, "node", w.Node)
			x.ways.End(w.Pool, w.Node)
		}
	}
}

// ask asks whether a user may do something that is no resource.
func (x *wayIn) ask(ctx context.Context, u user.Info, verb, path string) (authorizer.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	may, _, err := x.authz.Authorize(ctx, authorizer.AttributesRecord{User: u, Verb: verb, Path: path})
	return may, err
}

// authorize is reverse.FrontConfig.Authorize: the filters have asked about contract.ConnectPath.
func (x *wayIn) authorize(req *http.Request, in reverse.Place) (string, error) {
	u, ok := genericrequest.UserFrom(req.Context())
	if !ok {
		return "", errors.New("who calls is not known")
	}
	if in.Pool != "" {
		return u.GetName(), nil
	}
	may, err := x.ask(req.Context(), u, "connect", contract.StraightPath)
	if err != nil {
		return u.GetName(), fmt.Errorf("kube-apiserver does not say whether user %q may connect: %w", u.GetName(), err)
	}
	if may != authorizer.DecisionAllow {
		return u.GetName(), fmt.Errorf("it is of no pool, and for all else user %q needs the verb connect of the "+
			"nonResourceURL %s", u.GetName(), contract.StraightPath)
	}
	return u.GetName(), nil
}
