package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
)

const (
	// looksEvery is how often it is looked whether a relay that is read is behind.
	looksEvery = time.Second
	// again is after what time somebody who was refused may ask again.
	again = 5 * time.Second
)

// healthPaths are answered to everybody.
var healthPaths = []string{"/healthz", "/livez", "/readyz"}

// front serves relays behind authorization.
type front struct {
	reads     func(resource string) (*relay.Relay, func())
	resources []relay.Resource
	within    time.Duration
	clock     clock.WithTickerAndDelayedExecution
	logger    *slog.Logger
	next      http.Handler // of what is no resource
	pods      *PodsHandler // of logs and commands of pods; nil: there are none
	// stale, if set, is told of each answer that was refused or ended since its relay is behind.
	stale func(resource string)

	mu   sync.Mutex
	open map[*relay.Relay]*readers
}

// readers are the answers of one relay that are under way.
type readers struct {
	n   int
	ctx context.Context
	end context.CancelFunc // all of them
}

// named is the resource that a request is for.
func (x *front) named(info *genericrequest.RequestInfo) (name string, ok bool) {
	i := slices.IndexFunc(x.resources, func(r relay.Resource) bool {
		return r.Group == info.APIGroup && r.Version == info.APIVersion && r.Resource == info.Resource
	})
	if i < 0 {
		return "", false
	}
	return x.resources[i].String(), true
}

// long reports whether an answer may take long.
func (x *front) long(req *http.Request, info *genericrequest.RequestInfo) bool {
	return info != nil && info.IsResourceRequest || isLong(req)
}

// ServeHTTP implements http.Handler.
func (x *front) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, ok := genericrequest.RequestInfoFrom(req.Context())
	if !ok || !info.IsResourceRequest {
		x.next.ServeHTTP(w, req)
		return
	}
	if x.pods != nil && ServesPods(info) {
		x.pods.ServeHTTP(w, req)
		return
	}
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	name, named := x.named(info)
	switch {
	case !named || info.Subresource != "":
		rest.WriteError(w, req, apierrors.NewNotFound(resource, info.Name))
		return
	case req.Method != http.MethodGet:
		rest.WriteError(w, req, apierrors.NewMethodNotSupported(resource, info.Verb))
		return
	}
	r, done := x.reads(name)
	defer done()
	if r == nil {
		x.refuse(w, req, name, fmt.Errorf("%s is not relayed yet", name))
		return
	}
	if err := x.await(req.Context(), r); err != nil {
		x.refuse(w, req, name, err)
		return
	}
	ctx, end := x.while(req.Context(), r)
	defer end()
	if s := r.Status(); s.Synced {
		age, _ := s.Age(x.clock.Now())
		w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
	}
	(&rest.Handler{Source: r, Logger: x.logger}).ServeHTTP(w, req.WithContext(ctx))
}

// await waits until a relay can be served, or will not be soon.
func (x *front) await(ctx context.Context, r *relay.Relay) error {
	ctx, cancel := context.WithTimeout(ctx, x.within)
	defer cancel()
	_ = r.WaitUntil(ctx, func() bool { return r.Denied() != nil || r.Status().Synced })
	return x.behind(r)
}

// behind is why a relay cannot be served; nil: it can.
func (x *front) behind(r *relay.Relay) error {
	s := r.Status()
	age, ever := s.Age(x.clock.Now())
	switch {
	case s.Denied != "": // the answer says so
		return nil
	case !s.Synced || !ever:
		return fmt.Errorf("%s has not been read from kube-apiserver yet", r.Resource())
	case age > x.within:
		return fmt.Errorf("kube-apiserver has shown no sign of %s for %v", r.Resource(), age.Round(time.Second))
	}
	return nil
}

func (x *front) refuse(w http.ResponseWriter, req *http.Request, name string, why error) {
	x.told(name)
	rest.WriteError(w, req, unavailable(why))
}

func unavailable(why error) error {
	err := apierrors.NewServiceUnavailable("this gate is behind: " + why.Error() + "; read at kube-apiserver itself")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(again / time.Second)}
	return err
}

// knowing answers those who show a certificate by 503 until it is known which authorities sign for callers. Else each
// would be nobody, and be told that he may not read, which hubs believe for a while.
func knowing(ca dynamiccertificates.CAContentProvider, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		shown := req.TLS != nil && len(req.TLS.PeerCertificates) > 0
		if err := unknown(ca); err != nil && shown && !slices.Contains(healthPaths, req.URL.Path) {
			rest.WriteError(w, req, unavailable(err))
			return
		}
		next.ServeHTTP(w, req)
	})
}

// unknown is why callers are not known by their certificates yet; nil: they are.
func unknown(ca dynamiccertificates.CAContentProvider) error {
	if _, ok := ca.VerifyOptions(); !ok {
		return errors.New("kube-apiserver has not said yet which authorities sign for its callers")
	}
	return nil
}

func (x *front) told(name string) {
	if x.stale != nil {
		x.stale(name)
	}
}

// while is the context of an answer, which ends when its relay is behind. done is to be called when it is over.
func (x *front) while(ctx context.Context, r *relay.Relay) (_ context.Context, done func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.open[r]
	if all == nil {
		all = &readers{}
		all.ctx, all.end = context.WithCancel(context.Background())
		if x.open == nil {
			x.open = map[*relay.Relay]*readers{}
		}
		x.open[r] = all
	}
	all.n++
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(all.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		x.mu.Lock()
		defer x.mu.Unlock()
		if all.n--; all.n == 0 {
			all.end()
			if x.open[r] == all {
				delete(x.open, r)
			}
		}
	}
}

// run ends answers of relays that are behind, until ctx ends.
func (x *front) run(ctx context.Context) error {
	for ; ctx.Err() == nil; process.Pause(ctx, x.clock, looksEvery) {
		x.look()
	}
	return nil
}

func (x *front) look() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for r, all := range x.open {
		if err := x.behind(r); err != nil {
			x.logger.Warn("a relay is behind: its readers are sent to kube-apiserver", "resource", r.Resource().String(),
				"readers", all.n, "err", err)
			x.told(r.Resource().String())
			all.end()
			delete(x.open, r)
		}
	}
}

// readersOf counts the answers under way.
func (x *front) readersOf() map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := map[string]int{}
	for r, all := range x.open {
		n[r.Resource().String()] = all.n
	}
	return n
}
