package credential

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/pki"
)

const (
	firstPause   = 500 * time.Millisecond // before something is tried again
	deniedPause  = 10 * time.Second       // the same after a denial, or an answer that is not used
	longestPause = 5 * time.Minute
	refusedPause = 5 * time.Second  // between two times that somebody is asked because a certificate is refused
	slowReads    = 6                // after which it is told that nobody answers
	spread       = 20 * time.Second // within which a pool renews what another authority signs from now on
	look         = time.Hour        // how often a Keeper looks whether its certificate is due, at least; see held.often
)

// KeeperConfig of a Keeper.
type KeeperConfig struct {
	Identity pki.Identity
	Subject  pki.Subject
	Life     time.Duration // that is asked for; 0: the usual one
	Dir      string        // where it is kept; "": in memory only
	// Trusted are the authorities by which others will judge the certificate. Nil: they are not known here, as those of
	// kube-apiserver.
	Trusted func() []*x509.Certificate
	// Signs is the authority that signs now: what another one signed is renewed soon. Nil, or of nil: that is not known.
	Signs func() *x509.Certificate
	// Refused tells why others do not take a certificate that they trust: it is revoked. Nil: nobody refuses one.
	Refused func(*x509.Certificate) error
	// Patience is how long a first certificate is asked for while kube-apiserver answers and nobody signs it; then it is
	// not wanted any more. 0: for ever.
	Patience time.Duration
	Idle     bool // it is not wanted until Want says so
	Clock    clock.WithTicker
	Metrics  *KeeperMetrics
	Logger   *slog.Logger
}

// Keeper holds one certificate while its Run runs.
type Keeper struct {
	KeeperConfig
	shelf  shelf
	desk   desk // of Run alone
	follow []func()
	renew  pki.Renewal
	random *rand.Rand // of Run alone
	key    crypto.Signer
	sent   bool              // a request for key is there, as far as is known
	reads  int               // of it, that brought no answer
	since  time.Time         // since when kube-apiserver answers, and there is none; zero: it does not
	said   map[string]string // what was logged since there was a certificate last, by reason
	good   bool              // somebody who is trusted vouches for what is held
	soon   time.Time         // when it is renewed because another authority signs now; zero: it is not
	doubt  atomic.Bool       // it has to be looked at again
	wanted atomic.Bool
	poke   chan struct{}
	held   atomic.Pointer[heldPair]

	mu     sync.Mutex
	last   failure
	nudged time.Time // see Hurry
}

// failure is why there is no certificate yet, or no other one.
type failure struct {
	err  error // nil: nothing failed
	away bool  // nobody answered
}

// heldPair is a certificate that is handed out.
type heldPair struct {
	pair  *pki.Pair
	tls   tls.Certificate
	chain []*x509.Certificate
}

// KeeperStatus is what a Keeper says of its certificate.
type KeeperStatus struct {
	Kind      pki.Kind  `json:"kind"`
	End       time.Time `json:"end,omitzero"` // zero: there is none
	Due       time.Time `json:"due,omitzero"`
	LastError string    `json:"lastError,omitempty"`
}

// OpenKeeper reads what is kept. What cannot be used is told, and the one before is used.
func OpenKeeper(c KeeperConfig) (*Keeper, error) {
	if c.Identity.Signer == "" {
		return nil, fmt.Errorf("certificate of a %s: nobody signs requests for it", c.Identity.Kind)
	}
	if c.Life == 0 {
		c.Life = c.Identity.Life.Usual
	}
	if err := c.Identity.CheckLife(c.Life); err != nil {
		return nil, fmt.Errorf("certificate of a %s: %w", c.Identity.Kind, err)
	}
	if _, err := c.Identity.Template(c.Subject, time.Time{}, c.Life); err != nil {
		return nil, fmt.Errorf("certificate of a %s: %w", c.Identity.Kind, err)
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, c.Identity.Kind, c.Subject)
	k := &Keeper{
		KeeperConfig: c, shelf: shelf{c.Dir, c.Identity.Kind},
		renew:  pki.Renewal{Clock: c.Clock, Seed: sum.Sum64()},
		random: rand.New(rand.NewPCG(sum.Sum64(), uint64(c.Clock.Now().UnixNano()))), poke: make(chan struct{}, 1),
		said: map[string]string{},
	}
	k.wanted.Store(!c.Idle)
	k.doubt.Store(true)
	if err := k.shelf.open(); err != nil {
		return nil, fmt.Errorf("certificate of a %s: %w", c.Identity.Kind, err)
	}
	for _, path := range []string{k.shelf.current(), k.shelf.before()} {
		p, err := k.shelf.load(path)
		if err == nil && p != nil {
			err = k.hold(p)
		}
		if err != nil {
			k.Logger.Warn("a certificate that was kept cannot be used; the one before it counts, or a new one is asked for",
				"file", path, "err", err)
			continue
		}
		if p != nil {
			break
		}
	}
	key, err := k.shelf.pending()
	if err != nil {
		k.Logger.Warn("the key of a request cannot be used; another one is made", "file", k.shelf.asked(), "err", err)
	}
	k.key = key
	return k, nil
}

// hold hands a pair out from now on, if it is ours.
func (k *Keeper) hold(p *pki.Pair) error {
	chain, err := k.Identity.CheckHeld(p, k.Subject)
	if err != nil {
		return err
	}
	c, err := p.TLS()
	if err != nil {
		return err
	}
	k.held.Store(&heldPair{p, c, chain})
	return nil
}

// Get is the certificate of now; nil: there is none yet.
func (k *Keeper) Get() *tls.Certificate {
	if h := k.held.Load(); h != nil {
		return &h.tls
	}
	return nil
}

// Want says whether the certificate is needed. One that is not is not renewed. It never blocks.
func (k *Keeper) Want(yes bool) {
	if k.wanted.Swap(yes) != yes {
		k.wake()
	}
}

// Wanted tells what Want said.
func (k *Keeper) Wanted() bool { return k.wanted.Load() }

// Retry says that kube-apiserver may be back: what failed because nobody answered is tried again now. It never blocks.
func (k *Keeper) Retry() {
	k.mu.Lock()
	away := k.last.away
	k.mu.Unlock()
	if away {
		k.wake()
	}
}

// Hurry says that somebody does not take the certificate any more. If it has ended, another one is asked for now, and
// not after the pause of a cloud that was away: who refuses it has a sign of the cloud. It reports whether it was,
// which is at most once in refusedPause. It never blocks.
func (k *Keeper) Hurry() bool {
	h, now := k.held.Load(), k.Clock.Now()
	if h == nil || now.Before(h.chain[0].NotAfter) {
		return false
	}
	k.mu.Lock()
	early := now.Sub(k.nudged) < refusedPause
	if !early {
		k.nudged = now
	}
	k.mu.Unlock()
	if early {
		return false
	}
	k.wake()
	return true
}

// Look says that other authorities are trusted from now on, or other certificates refused. It never blocks.
func (k *Keeper) Look() {
	k.doubt.Store(true)
	k.wake()
}

func (k *Keeper) wake() {
	select {
	case k.poke <- struct{}{}:
	default:
	}
}

// Status tells how the certificate is.
func (k *Keeper) Status() KeeperStatus {
	s := KeeperStatus{Kind: k.Identity.Kind}
	if h := k.held.Load(); h != nil {
		s.End, s.Due = h.chain[0].NotAfter.UTC(), k.renew.At(h.chain[0]).UTC()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last.err != nil {
		s.LastError = k.last.err.Error()
	}
	return s
}

// Follow has f called each time that there is another certificate. It must be called before Run.
func (k *Keeper) Follow(f func()) { k.follow = append(k.follow, f) }

// Run gets the certificate and renews it until ctx ends. cloud carries requests to kube-apiserver: scheme and host of
// their addresses do not matter.
func (k *Keeper) Run(ctx context.Context, cloud http.RoundTripper) error {
	k.desk = desk{cloud}
	for failures := 0; ctx.Err() == nil; {
		wait := k.rest()
		if wait > 0 {
			failures = 0
		} else {
			wait = k.try(ctx, &failures)
		}
		if k.await(ctx, wait) {
			failures = 0
		}
	}
	return nil
}

// try takes a step, tells how it went, and says how long to wait for the next one.
func (k *Keeper) try(ctx context.Context, failures *int) (wait time.Duration) {
	err := k.step(ctx)
	if err == nil && k.rest() == 0 {
		err = errShort
	}
	if ctx.Err() == nil {
		k.note(err)
	}
	if err == nil {
		return 0
	}
	wait = k.pause(err, *failures)
	if !errors.Is(err, errPending) && !errors.Is(err, errUnjudged) {
		*failures++
	}
	return wait
}

// await waits for a time, or until there is something to look at.
func (k *Keeper) await(ctx context.Context, d time.Duration) (poked bool) {
	timer := k.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-k.poke:
		return true
	}
	return false
}

// errShort is of a signer that is not asked again and again.
var errShort = &pki.MismatchError{
	Field: "life", Value: "over", Allowed: "a certificate that need not be renewed at once",
}

// rest is how long nothing has to be done.
func (k *Keeper) rest() time.Duration {
	h := k.held.Load()
	switch {
	case !k.wanted.Load():
		return look
	case h == nil, !k.vouched(h):
		return 0
	}
	due := k.renew.At(h.chain[0])
	if !k.soon.IsZero() && k.soon.Before(due) {
		due = k.soon
	}
	return max(0, min(look, h.often(), due.Sub(k.Clock.Now())))
}

// often is within what time who holds it does something about it: a twentieth of its life. Its clock may be set
// meanwhile, as that of a machine which started in 1970 and hears the cloud: a timer does not know that.
func (h *heldPair) often() time.Duration {
	return max(firstPause, h.chain[0].NotAfter.Sub(h.chain[0].NotBefore)/20)
}

// vouched is verify, once for each change of authorities. The end of a certificate is seen by its being due.
func (k *Keeper) vouched(h *heldPair) bool {
	if k.doubt.Swap(false) {
		k.good = k.verify(h.chain) == nil
		switch superseded := k.superseded(h.chain[0]); {
		case !superseded:
			k.soon = time.Time{}
		case k.soon.IsZero():
			k.soon = k.Clock.Now().Add(time.Second + time.Duration(k.random.Int64N(int64(spread-time.Second))))
		}
	}
	return k.good
}

// superseded reports whether another authority signs now than the one that signed a leaf.
func (k *Keeper) superseded(leaf *x509.Certificate) bool {
	if k.Signs == nil {
		return false
	}
	signs := k.Signs()
	return signs != nil && !pki.IssuedBy(leaf, signs)
}

// verify reports whether somebody who is trusted vouches for a certificate now.
func (k *Keeper) verify(chain []*x509.Certificate) error {
	if k.Trusted == nil {
		return pki.CheckSpan(chain[0], k.Clock.Now())
	}
	if err := k.Identity.Verify(chain, k.Trusted(), k.Clock.Now()); err != nil || k.Refused == nil {
		return err
	}
	if why := k.Refused(chain[0]); why != nil {
		return &pki.MismatchError{
			Field: "certificate", Value: chain[0].Subject.CommonName, Allowed: "one that is not revoked: " + why.Error(),
		}
	}
	return nil
}

// pause is how long to wait after so many failures before this one.
func (k *Keeper) pause(err error, failures int) time.Duration {
	first, most := firstPause, longestPause
	if errors.Is(err, errPending) || errors.Is(err, errUnjudged) {
		failures = k.reads
		k.reads++
	}
	if h := k.held.Load(); h != nil {
		most = min(most, h.often())
	}
	if reason := reasonOf(err); reason == denied || reason == mismatch { // each one is another request
		first, most = deniedPause, max(most, deniedPause)
	}
	wait := min(first<<min(failures, 16), most)
	return wait*3/4 + time.Duration(k.random.Int64N(int64(wait/2)))
}

// step takes one step towards a new certificate. It is nil when there is one.
func (k *Keeper) step(ctx context.Context) error {
	if err := k.prepare(); err != nil {
		return err
	}
	r, err := k.request(ctx)
	if err != nil {
		return err
	}
	certPEM, err := signed(r)
	if err == nil && k.Trusted != nil && len(k.Trusted()) == 0 {
		return errUnjudged
	}
	if err == nil {
		err = k.adopt(certPEM)
	}
	if err != nil && !errors.Is(err, errPending) { // this request will never bring another answer
		k.forget()
	}
	return err
}

// prepare makes the key of a request, if there is none.
func (k *Keeper) prepare() (err error) {
	if k.key != nil {
		return nil
	}
	if k.key, err = pki.NewKey(); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	k.sent, k.reads = false, 0
	k.kept(k.shelf.ask(k.key))
	return nil
}

func (k *Keeper) forget() {
	k.key, k.sent = nil, false
	k.kept(k.shelf.forget())
}

// kept tells of a disk that takes nothing.
func (k *Keeper) kept(err error) {
	if err == nil {
		return
	}
	k.Metrics.failures.WithLabelValues(string(k.Identity.Kind), onDisk).Inc()
	k.Logger.Warn("a certificate cannot be kept; a restart asks for another one", "kind", k.Identity.Kind, "err", err)
}

// request reads the request for the key, or makes it.
func (k *Keeper) request(ctx context.Context) (*certificatesv1.CertificateSigningRequest, error) {
	name, err := nameOf(k.Identity, k.Subject, k.key)
	if err != nil {
		return nil, err
	}
	if !k.sent {
		want, err := draft(name, k.Identity, k.Subject, k.Life, k.key)
		if err != nil {
			return nil, err
		}
		r, err := k.desk.create(ctx, want)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		if k.sent = true; err == nil {
			return r, nil
		}
	}
	r, err := k.desk.read(ctx, name)
	if apierrors.IsNotFound(err) { // it was cleaned up: nobody answered for a day
		k.sent = false
	}
	return r, err
}

// adopt checks a certificate and uses it from now on.
func (k *Keeper) adopt(certPEM []byte) error {
	keyPEM, err := pki.EncodeKey(k.key)
	if err != nil {
		return err
	}
	p := &pki.Pair{CertPEM: certPEM, KeyPEM: keyPEM}
	chain, err := k.Identity.CheckHeld(p, k.Subject)
	if err == nil {
		err = k.verify(chain)
	}
	if err != nil {
		return fmt.Errorf("what was signed is not used: %w", err)
	}
	var former *pki.Pair
	if h := k.held.Load(); h != nil {
		former = h.pair
	}
	k.kept(k.shelf.save(p, former))
	if err := k.hold(p); err != nil {
		return err
	}
	k.good, k.soon = true, time.Time{}
	k.doubt.Store(true) // it may have been signed a moment before another authority did
	k.forget()
	k.Metrics.renewals.WithLabelValues(string(k.Identity.Kind)).Inc()
	k.Logger.Info("certificate issued", "kind", k.Identity.Kind, "end", chain[0].NotAfter.UTC(),
		"due", k.renew.At(chain[0]).UTC())
	for _, f := range k.follow {
		f()
	}
	return nil
}

// note tells of a failure once, and counts it.
func (k *Keeper) note(err error) {
	reason := reasonOf(err)
	k.mu.Lock()
	k.last = failure{err, reason == unreachable}
	k.mu.Unlock()
	if err == nil {
		k.said = map[string]string{}
		return
	}
	if k.impatient(reason) {
		k.Want(false)
		k.Logger.Warn("a certificate is not asked for any more, until the hub restarts", "kind", k.Identity.Kind,
			"tried-for", k.Patience, "err", err)
		return
	}
	if reason != "" {
		k.Metrics.failures.WithLabelValues(string(k.Identity.Kind), reason).Inc()
	} else if k.reads < slowReads {
		return
	}
	about := ""
	var no *deniedError
	if errors.As(err, &no) {
		about = no.message // another reason is told as well
	}
	if told, yes := k.said[reason]; yes && told == about {
		return
	}
	k.said[reason] = about
	k.Logger.Warn("a certificate is not there yet; it is tried again, and the former one goes on to its end",
		"kind", k.Identity.Kind, "err", err)
}

// impatient reports whether nobody has signed the first certificate for too long.
func (k *Keeper) impatient(reason string) bool {
	now := k.Clock.Now()
	switch {
	case k.Patience == 0, reason == unreachable, k.held.Load() != nil:
		k.since = time.Time{}
	case k.since.IsZero():
		k.since = now
	default:
		return now.Sub(k.since) >= k.Patience
	}
	return false
}

// reasonOf is "" while an answer is waited for.
func reasonOf(err error) string {
	var answer *refusedError
	var no *deniedError
	var differs *pki.MismatchError
	switch {
	case err == nil, errors.Is(err, errPending), errors.Is(err, errUnjudged):
		return ""
	case errors.As(err, &no):
		return denied
	case errors.As(err, &differs):
		return mismatch
	case errors.As(err, &answer):
		return refused
	}
	return unreachable
}
