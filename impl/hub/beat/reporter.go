package beat

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
)

// Reporter reports to the cloud, while this hub leads, which nodes of the pool were heard, and brings the receipts back
// to the pool. What it reports and when is heartbeat.Caller's business.
type Reporter struct {
	ReporterConfig
	began time.Time
	leads atomic.Bool
	poke  chan struct{}

	said    string // the refusal that was logged last
	managed bool   // the Lease has managedFields, which would come back with each answer
}

// Desks are those of the pool: there is one at each replica of its coordinator, or at this hub.
type Desks interface {
	// Exchange posts a notice and collects entries. A desk that does not answer is left out.
	Exchange(ctx context.Context, n heartbeat.Notice) []heartbeat.Entry
}

// ReporterConfig is what a reporter is made of.
type ReporterConfig struct {
	Pool    string
	Cloud   Cloud // with the forwarder's certificate; nil: there will be none, and nothing is reported
	Desks   Desks
	Trusted func() []*x509.Certificate // who may sign receipts
	Period  func() uint64              // the newest that is known to be open
	Clock   clock.WithTicker
	Logger  *slog.Logger
	Count   func(outcome string) // receipted, silent, refused, failed
}

// NewReporter makes that of a hub that does not lead.
func NewReporter(c ReporterConfig) *Reporter {
	if u, ok := c.Cloud.(*uplink.Urgent); ok && u == nil { // of a hub that has no certificate for it
		c.Cloud = nil
	}
	return &Reporter{ReporterConfig: c, began: c.Clock.Now(), poke: make(chan struct{}, 1)}
}

// Lead says whether this hub leads. It never blocks.
func (r *Reporter) Lead(yes bool) {
	r.leads.Store(yes)
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// Run reports while this hub leads, until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	var caller heartbeat.Caller
	for led := false; ctx.Err() == nil; {
		leads := r.leads.Load() && r.Cloud != nil
		if leads && !led {
			caller.Lead(r.now())
		}
		led = leads
		var due <-chan time.Time
		stop := func() bool { return false }
		if leads {
			wait := caller.Due() - r.now()
			if wait <= 0 && r.Cloud.Able() {
				r.report(ctx, &caller)
				continue
			}
			timer := r.Clock.NewTimer(max(wait, time.Second)) // its certificate may be on its way
			due, stop = timer.C(), timer.Stop
		}
		select {
		case <-ctx.Done():
		case <-r.poke:
		case <-due:
		}
		stop()
	}
	return nil
}

func (r *Reporter) now() time.Duration { return r.Clock.Since(r.began) }

// report makes one report.
func (r *Reporter) report(ctx context.Context, caller *heartbeat.Caller) {
	all := r.Desks.Exchange(ctx, heartbeat.Notice{})
	caller.Heard(r.Period())
	report, left := caller.Report(r.now(), all)
	if left > 0 {
		r.Logger.Warn("the pool has more nodes than one report: the others renew their Leases themselves", "left", left)
	}
	code, text, err := r.send(ctx, report)
	outcome := "silent"
	var receipt heartbeat.Receipt
	if err == nil && text != "" {
		receipt, err = heartbeat.OpenReceipt(text, r.Pool, pki.Vouches, r.Trusted())
	}
	switch {
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusConflict:
		outcome = "refused"
		caller.Refused(r.now())
	case err != nil:
		outcome = "failed"
		caller.Unanswered(r.now())
	case text == "":
		caller.Unanswered(r.now())
	default:
		notice, progress := caller.Answered(r.now(), receipt, text)
		if progress {
			outcome = "receipted"
		}
		caller.Keep(r.Desks.Exchange(ctx, notice))
	}
	r.Count(outcome)
	if err == nil {
		r.said = ""
	} else if said := err.Error(); said != r.said && ctx.Err() == nil {
		r.said = said
		r.Logger.Info("a report of the pool's roll call has no receipt; its nodes renew their Leases themselves", "outcome",
			outcome, "err", err)
	}
}

// send writes a report into the Lease of the pool, and returns the receipt that stands there.
func (r *Reporter) send(ctx context.Context, report heartbeat.Report) (code int, receipt string, err error) {
	patch := lease.Patch{Spec: lease.PatchSpec{HolderIdentity: report.String()}}
	if r.managed {
		patch.Unmanage()
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return 0, "", err
	}
	a, err := r.Cloud.Send(ctx, uplink.Message{
		Method: http.MethodPatch, Body: body,
		URI: heardPath + url.PathEscape(contract.HeardPrefix+r.Pool),
		Header: http.Header{
			"Content-Type": {string(types.MergePatchType)}, "Accept": {lease.AcceptMetadata}, "User-Agent": {contract.UserAgent},
		},
	})
	if err != nil {
		return 0, "", err
	}
	if a.Code > 299 {
		return a.Code, "", fmt.Errorf("report to %s%s: %d %s", contract.HeardPrefix, r.Pool, a.Code, http.StatusText(a.Code))
	}
	l, err := lease.Decode(a.Header.Get("Content-Type"), a.Body)
	if err != nil {
		return 0, "", err
	}
	r.managed = len(l.ManagedFields) > 0
	return a.Code, l.Annotations[contract.ReceiptAnnotation], nil
}

const heardPath = "/apis/coordination.k8s.io/v1/namespaces/" + contract.KeyNamespace + "/leases/"
