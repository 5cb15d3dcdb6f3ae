package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	resyncTries    = 3                // metadata lists, before all is listed
	resyncParallel = 8                // objects that are fetched at once
	resyncTimeout  = 30 * time.Second // of one of them; all of a metadata list are not timed
	resyncShare    = 3                // all is listed if more than a third of the objects differ …
	resyncFew      = 16               // … and more than these

	compressedFrom = 128 << 10 // bytes of a list from which kube-apiserver compresses it
	estimateOf     = 64        // objects whose size stands for that of all
)

// errContradicts says of a relay of the pool that it began from nothing, in a history that it counts like an earlier
// one: what is the same may only look so.
var errContradicts = errors.New("the list contradicts what the relay holds")

// resync brings the relay to the upstream's state without a list of everything (rule 5). An upstream that gives
// differences is told what the relay has, and names what is the same. Else the metadata of all objects tell which ones
// differ, and those are fetched. Most of it goes by streaming lists, because kube-apiserver compresses
// these whatever their size; it compresses no other answer below 128 KiB. Where too much differs, everything is listed,
// and the stream goes on.
func (f *Feeder) resync(ctx context.Context, up *hop.Upstream) error {
	f.count(&f.status.Resyncs)
	settle, leave := alone, func() {}
	if witness := f.partly(ctx, up); witness != nil {
		settle, leave = f.way(ctx, witness, f.cfg.Relay.Status())
	}
	defer leave()
	if up.Delta && !f.wholes.Load() {
		f.cfg.Logger.Info("asking what differs from what is here", "upstream", up.Name,
			"version", f.cfg.Relay.Status().Version)
		if err := f.streamList(ctx, up, nil, settle, ""); !errors.Is(err, wire.ErrBase) {
			return err
		}
		return f.streamList(ctx, up, nil, settle, member.CauseExpired) // as after errContradicts
	}
	fetched := map[string]*wire.Object{}
	for range resyncTries {
		end, items, missing, err := f.compare(ctx, up, fetched)
		if errors.Is(err, errContradicts) {
			break
		}
		if err != nil {
			return err
		}
		if len(missing) > max(resyncFew, (len(items)+len(missing))/resyncShare) {
			break
		}
		f.cfg.Logger.Info("compared by metadata", "upstream", up.Name, "version", end.Version, "same", len(items),
			"differ", len(missing))
		if err := f.fetch(ctx, up, end.Version, missing, fetched); err != nil {
			return err
		}
		same := true
		for _, m := range missing {
			o := fetched[m.Key]
			if o == nil || o.UID != m.UID || o.Version != m.Version { // it changed again: a relay's state is of one version
				same = false
				break
			}
			items = append(items, o)
		}
		if err := up.Admits(); err != nil {
			return err
		}
		if same {
			intake := f.intake(up)
			intake.Along(settle(end.Version, items))
			return intake.End(f.cfg.Relay.Status().History, end, items)
		}
	}
	return f.streamList(ctx, up, nil, settle, member.CauseExpired)
}

// compare lists the metadata of everything. It returns the bookmark that ends that, the objects that the relay, or
// fetched, holds in just this form, and the metadata of the others.
func (f *Feeder) compare(ctx context.Context, up *hop.Upstream, fetched map[string]*wire.Object) (end *wire.Event,
	items, missing []*wire.Object, err error) {
	held := map[string]*wire.Object{}
	for o := range f.cfg.Relay.Objects() {
		held[o.Key] = o
	}
	s, proof := f.cfg.Relay.Status(), error(nil)
	sort := func(m *wire.Object) {
		for _, o := range []*wire.Object{held[m.Key], fetched[m.Key]} {
			if o != nil && o.UID == m.UID && o.Version == m.Version {
				items = append(items, o)
				return
			}
		}
		if m.Version <= s.Version && proof == nil { // as the relay should hold it, and does not
			proof = contradiction(s, m)
		}
		missing = append(missing, &wire.Object{
			Key: m.Key, Namespace: m.Namespace, Name: m.Name, UID: m.UID, Version: m.Version,
		})
	}
	// compressed in one piece they are half as long; a relay testifies in streams only.
	if !up.Progress && f.largeMetadata(held) {
		end, err = f.list(ctx, up, hop.Metadata, url.Values{}, sort)
	} else {
		end, err = f.initial(ctx, up, hop.Metadata, url.Values{}, sort)
	}
	switch {
	case err != nil:
	case !up.Consistent && proof != nil:
		err = errContradicts
	case !up.Consistent:
	case end.Version < s.Version:
		err = lost(s, fmt.Sprintf("a list is at version %d, %d was reached", end.Version, s.Version))
	default:
		err = proof
	}
	return end, items, missing, err
}

// largeMetadata reports whether kube-apiserver will compress a list of the metadata of objects.
func (f *Feeder) largeMetadata(held map[string]*wire.Object) bool {
	n, size := 0, 0
	for _, o := range held {
		m, err := o.Metadata(f.cfg.Relay.Resource().Encoding())
		if n++; err != nil || n > estimateOf {
			break
		}
		size += len(m)
	}
	return n > 0 && size/min(n, estimateOf)*len(held) > compressedFrom*5/4
}

// fetch gets objects as they are at a version or later. One that is gone is not in fetched afterwards.
func (f *Feeder) fetch(ctx context.Context, up *hop.Upstream, version uint64, missing []*wire.Object,
	fetched map[string]*wire.Object) error {
	for _, m := range missing {
		delete(fetched, m.Key)
	}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(resyncParallel)
	for _, m := range missing {
		g.Go(func() error {
			ctx, cancel := f.limit(ctx, up, resyncTimeout, fmt.Errorf("%s did not come within %v", m.Key, resyncTimeout))
			defer cancel(nil)
			selector := "metadata.name=" + m.Name
			if m.Namespace != "" {
				selector += ",metadata.namespace=" + m.Namespace
			}
			_, err := f.initial(ctx, up, hop.Whole, url.Values{
				"fieldSelector": {selector}, "resourceVersion": {wire.FormatVersion(version)},
			}, func(o *wire.Object) {
				mu.Lock()
				defer mu.Unlock()
				fetched[o.Key] = o
			})
			return err
		})
	}
	return g.Wait()
}
