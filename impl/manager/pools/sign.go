package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/pki"
)

// sure is for how long it is taken for granted that the authority of a pool is the same: the keys say when it is
// another one, if they can be watched.
const sure = time.Minute

// signer signs what pools are told about themselves. It is safe for concurrent use.
type signer struct {
	client client.Client
	reader client.Reader // not from the cache
	// nil without an error: nobody signs for the pool.
	authority func(ctx context.Context, pool string) (*pki.Succession, error)
	clock     clock.PassiveClock
	log       *slog.Logger

	mu    sync.Mutex
	known map[string]signed // by pool
}

// signed is what was signed last, or found to be signed.
type signed struct {
	said, text string
	at         time.Time
	nobody     bool // signs for the pool
}

// forget says that the authority of a pool may be another one, or that hubs gave something back.
func (s *signer) forget(pool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, pool)
}

// sign puts into Endpoints, as they should be, what they say, signed by the pool's authority under a number above all
// before. What is signed already stays as it is.
func (s *signer) sign(ctx context.Context, v *view, o *corev1.Endpoints) error {
	is := &corev1.Endpoints{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(o), is); client.IgnoreNotFound(err) != nil {
		return err
	}
	text := is.Annotations[contract.LeaderHubSigned]
	if text != "" { // until there is another
		o.Annotations[contract.LeaderHubSigned] = text
	}
	told := o.DeepCopy()
	told.Annotations[contract.LeaderHubScope] = v.scope.withKinds()
	next, err := directory.Parse(v.name, told, 0)
	if err != nil {
		return fmt.Errorf("sign what pool %s is told: %w", v.name, err)
	}
	said, err := json.Marshal(next)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	if s.knows(v.name, string(said), text, now) {
		return nil
	}
	a, err := s.authority(ctx, v.name)
	if err != nil {
		return fmt.Errorf("sign what pool %s is told: %w", v.name, err)
	}
	if a == nil { // what a signer of before has left would go on to count
		s.note(v.name, signed{at: now, nobody: true})
		return nil
	}
	before, by, err := directory.Open([]byte(text), v.name, a.Trusted())
	if err != nil || bulletin.At(now).Later().Number(before.Version) != nil {
		before, by = directory.Entry{}, nil
	}
	above, err := s.returned(ctx, v.name, a, now)
	if err != nil {
		return err
	}
	last := before.Version
	before.Version = 0
	if was, err := json.Marshal(before); err != nil || by == nil || !by.Equal(a.Signer.Cert()) ||
		string(was) != string(said) || above > last {
		next.Version = bulletin.Next(max(last, above), now)
		line, err := next.Sign(a.Signer)
		if err != nil {
			return err
		}
		text = strings.TrimSpace(string(line))
		o.Annotations[contract.LeaderHubSigned] = text
	}
	s.note(v.name, signed{said: string(said), text: text, at: now})
	return nil
}

// note keeps what is known of a pool.
func (s *signer) note(pool string, is signed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[pool] = is
}

// knows reports whether a text is known to be what is said, signed, or that nobody signs.
func (s *signer) knows(pool, said, text string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[pool]
	return ok && now.Sub(k.at) < sure && (k.nobody || text != "" && k.said == said && k.text == text)
}

// returned is the number of what hubs gave back, 0 if that is nothing: this cluster was restored from a backup, and the
// pool knows what was signed after it.
func (s *signer) returned(ctx context.Context, pool string, a *pki.Succession, now time.Time) (
	number uint64, err error) {
	back := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: contract.KeyNamespace, Name: contract.ReturnedPrefix + pool}
	if err := s.reader.Get(ctx, key, back); err != nil || back.Data[contract.DirectoryKey] == "" {
		return 0, client.IgnoreNotFound(err)
	}
	e, _, err := directory.Open([]byte(back.Data[contract.DirectoryKey]), pool, pki.Speakers(a.Trusted()))
	if err == nil {
		err = bulletin.At(now).Number(e.Version)
	}
	if err != nil {
		s.log.Warn("the configuration of the pool that hubs gave back is invalid", "pool", pool, "err", err)
		return 0, nil
	}
	return e.Version, nil
}
