package identity

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// lookAfter is how often the pods of open streams are looked for in the store, which costs nothing but that.
const lookAfter = 10 * time.Second

// streams are the watches that a hub answers itself, by the credentials that opened them. The cloud has allowed them
// once, and would hear no more of them: so they end here when it refuses the credentials, or when the pod is gone to
// which a token is bound.
type streams struct {
	clock   clock.Clock
	now     func() time.Time
	pods    Pods // nil: nothing is known of them
	refused *refused

	mu   sync.Mutex
	open map[digest]map[*stream]struct{}
}

type stream struct {
	end context.CancelFunc
	pod *boundPod // nil: it is bound to none
}

// boundPod is the pod of a token.
type boundPod struct {
	namespace string
	ref
	seen bool // the store has had it since
}

// While returns a context that ends when these credentials stop counting, as far as that can be seen: the cloud answers
// 401 to them, whatever they were used for, or the store sees the pod of the token go, or replaced. It cannot see a
// ServiceAccount go: the next 401 tells. done is to be called when what it was for is over.
func (s *streams) While(ctx context.Context, h http.Header) (_ context.Context, done func()) {
	d, ok := credentialsOf(h)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	one := &stream{end: cancel}
	if raw, carries, err := bearerOf(h); carries && err == nil && s.pods != nil {
		if t := readToken(raw); t.signed != nil && t.claims.ofServiceAccount() && t.claims.Kubernetes.Pod != nil {
			one.pod = &boundPod{namespace: t.claims.Kubernetes.Namespace, ref: *t.claims.Kubernetes.Pod}
		}
	}
	s.add(d, one)
	if s.refused.has(d) { // meanwhile
		cancel()
	}
	return ctx, func() {
		s.remove(d, one)
		cancel()
	}
}

func (s *streams) add(d digest, one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[digest]map[*stream]struct{}{}
	}
	if s.open[d] == nil {
		s.open[d] = map[*stream]struct{}{}
	}
	s.open[d][one] = struct{}{}
}

func (s *streams) remove(d digest, one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open[d], one)
	if len(s.open[d]) == 0 {
		delete(s.open, d)
	}
}

// end ends all that credentials have opened.
func (s *streams) end(d digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open[d] {
		one.end()
	}
}

// ofPods are those whose token is bound to a pod.
func (s *streams) ofPods() (all []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.open {
		for one := range of {
			if one.pod != nil {
				all = append(all, one)
			}
		}
	}
	return all
}

// lookAfterPods ends what pods have opened that are gone, until ctx ends.
func (s *streams) lookAfterPods(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(lookAfter):
		}
		for _, one := range s.ofPods() {
			if s.gone(one.pod) {
				one.end()
			}
		}
	}
}

// gone reports whether a pod has been seen to go. A store that has not heard of it yet has not seen it go.
func (s *streams) gone(b *boundPod) bool {
	p, ok := s.pods(b.namespace, b.Name)
	if !ok {
		return b.seen
	}
	b.seen = true
	return p.UID != b.UID || !p.Gone.IsZero() && s.now().After(p.Gone.Add(Skew))
}
