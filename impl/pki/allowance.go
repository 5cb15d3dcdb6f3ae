package pki

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	// how long after its end a certificate may count inside its pool at most, see Allowance.
	offline = contract.OfflineAllowance
	lasts   = longest + offline // how long after its beginning
)

// Lasts is how long a certificate of a pool may count at all.
func Lasts() time.Duration { return lasts }

// Allowance is the rule for certificates inside a pool that have ended. Nobody can renew one without the cloud, and a
// pool is to go on reading. So that of a hub, a coordinator or a replica counts for 90 days more, or as long as the
// pool says, while who judges it has itself no sign of the cloud, and then its holder reads only. It never leads,
// feeds, or takes a Lease of the pool. What is revoked never counts. Those of people do not last longer: they can go to
// the cloud.
//
// The rule is for the one that verifies. Coordinator and hubs each have one.
type Allowance struct {
	Time   *Proven
	Cloud  func() bool                   // there is a sign of the cloud
	For    func() time.Duration          // as the pool says, 90 days at most; nil: 90 days
	Refuse func(*x509.Certificate) error // tells why a certificate is revoked; nil: none is
	Logger *slog.Logger

	counted atomic.Uint64
	mu      sync.Mutex
	told    map[string]time.Time // the ends of certificates, by common name
}

// maxTold bounds of how many holders it is told.
const maxTold = 1024

// again is how soon it is looked again whether a certificate that has ended counts.
const again = 5 * time.Second

// Verify is x509's, by the time that was proved; late tells that the certificate has ended and counts all the same, to
// read.
func (a *Allowance) Verify(chain []*x509.Certificate, opts x509.VerifyOptions) (late bool, err error) {
	a.Time.Learn(chain, opts.Roots)
	leaf, now := chain[0], a.Time.Now()
	late = a.allows(leaf, now)
	if opts.CurrentTime = now; late {
		opts.CurrentTime = leaf.NotAfter
	}
	if err := verify(chain, opts); err != nil {
		return false, err
	}
	if a.Refuse != nil {
		if err := a.Refuse(leaf); err != nil {
			return false, err
		}
	}
	if late {
		a.note(leaf)
	}
	return late, nil
}

// until is when the allowance of a certificate ends.
func (a *Allowance) until(cert *x509.Certificate) time.Time {
	most := offline
	if a.For != nil {
		most = min(max(a.For(), 0), offline)
	}
	until, last := cert.NotAfter.Add(most), cert.NotBefore.Add(lasts)
	if last.Before(until) {
		return last
	}
	return until
}

// allows is the rule.
func (a *Allowance) allows(leaf *x509.Certificate, now time.Time) bool {
	return now.After(leaf.NotAfter) && !now.After(a.until(leaf)) && ofMachine(leaf) && !a.Cloud()
}

// ofMachine reports whether a certificate is of a hub, a coordinator, or a replica.
func ofMachine(leaf *x509.Certificate) bool {
	name := leaf.Subject
	return name.CommonName == contract.CoordinatorName || slices.Contains(name.Organization, contract.HubGroup) ||
		slices.Contains(name.Organization, contract.ReplicaGroup)
}

// Rest is for how long a certificate that was verified counts before it has to be looked at again; 0: it does not.
func (a *Allowance) Rest(leaf *x509.Certificate) time.Duration {
	now := a.Time.Now()
	switch left := leaf.NotAfter.Sub(now); {
	case left >= 0:
		return left + time.Millisecond
	case a.allows(leaf, now):
		return again
	}
	return 0
}

// note counts, and tells once of each holder.
func (a *Allowance) note(leaf *x509.Certificate) {
	a.counted.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told == nil || len(a.told) == maxTold {
		a.told = map[string]time.Time{}
	}
	if a.told[leaf.Subject.CommonName].Equal(leaf.NotAfter) {
		return
	}
	a.told[leaf.Subject.CommonName] = leaf.NotAfter
	a.Logger.Warn("a certificate has ended and counts all the same, to read, while there is no sign of the cloud",
		"holder", leaf.Subject.CommonName,
		"ended", leaf.NotAfter.UTC(), "until", a.until(leaf).UTC())
}

// While is a context that ends when a certificate is no longer valid, or when end is called. A stream may last for
// months.
func (a *Allowance) While(ctx context.Context, c clock.WithDelayedExecution, leaf *x509.Certificate) (
	lasting context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	var timer clock.Timer
	var look func()
	look = func() {
		mu.Lock()
		defer mu.Unlock()
		switch rest := a.Rest(leaf); {
		case ctx.Err() != nil:
		case rest <= 0:
			cancel(errOver)
		default:
			timer = c.AfterFunc(rest, look)
		}
	}
	look()
	return ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		cancel(nil)
		if timer != nil {
			timer.Stop()
		}
	}
}

var errOver = errors.New("the certificate of the caller has expired: come again with its successor")

// Collector tells how often a certificate that had ended was let count.
func (a *Allowance) Collector() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_late_certificates_total",
		Help: "Times that a certificate of the pool which had ended was let count, to read, because there was no sign " +
			"of the cloud.",
	}, func() float64 { return float64(a.counted.Load()) })
}
