package pooldoor

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/hub/coordinator"
)

// Images is the way of a hub to the desk of its pool that knows who has content of images, and to those who have it.
// All hubs have to be at the same desk, whichever replica they use otherwise. So it is the first one by name, or the
// next one while that does not answer.
type Images struct {
	Node        string
	Coordinator *coordinator.Client
	Peers       *coordinator.Peers
	Desk        *Desk
	Told        func() string // at which members read from this hub
	Clock       clock.PassiveClock

	mu   sync.Mutex
	left map[string]time.Time // desks that did not answer, and when
}

// Images is the way of this hub to it.
func (d *Door) Images(c *coordinator.Client) *Images {
	told := func() string {
		if c.Address == contract.PoolAddressReverse {
			return ""
		}
		return c.Told()
	}
	return &Images{
		Node: d.Node, Coordinator: c, Peers: coordinator.NewPeers(c), Desk: d.Desk, Told: told, Clock: d.Clock,
		left: map[string]time.Time{},
	}
}

const (
	imagesTimeout = 2 * time.Second  // of one question: a desk is in the pool, and in memory
	leftFor       = 30 * time.Second // that a desk is asked last, after it did not answer
)

// errNoDesk is of a pool without a coordinator of which no leader hub is known.
var errNoDesk = errors.New("the pool has no coordinator and no leader hub that answers")

// place is a desk.
type place struct {
	name    string
	replica *coordinator.Replica // nil: it is this hub's own
}

// Ask implements images.Pool.
func (i *Images) Ask(ctx context.Context, a exchange.ImagesAsk) (out exchange.ImagesAnswer, err error) {
	a.Address, err = i.Told(), errNoDesk
	ctx, cancel := context.WithTimeout(ctx, 2*imagesTimeout)
	defer cancel()
	for _, p := range i.places() {
		if out, err = i.askAt(ctx, p, a); err == nil || ctx.Err() != nil {
			return out, err
		}
		i.mu.Lock()
		i.left[p.name] = i.Clock.Now()
		i.mu.Unlock()
	}
	return out, err
}

func (i *Images) askAt(ctx context.Context, p place, a exchange.ImagesAsk) (out exchange.ImagesAnswer, err error) {
	if p.replica == nil {
		return i.Desk.images.Exchange(i.Node, a)
	}
	ctx, cancel := context.WithTimeout(ctx, imagesTimeout)
	defer cancel()
	_, err = p.replica.Do(ctx, http.MethodPost, contract.ImagesPath, a, &out)
	return out, err
}

// places are the desks of the pool, in the order in which all hubs ask them.
func (i *Images) places() (all []place) {
	for _, r := range i.Coordinator.Replicas() {
		all = append(all, place{cmp.Or(r.Node, r.URL.Host), r})
	}
	if i.Desk.Leases.IsOpen() {
		all = append(all, place{name: i.Node})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.Clock.Now()
	for name, at := range i.left {
		if now.Sub(at) > leftFor {
			delete(i.left, name)
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(i.left[a.name].Compare(i.left[b.name]), cmp.Compare(a.name, b.name))
	})
	return all
}

// Open implements images.Pool.
func (i *Images) Open(ctx context.Context, from exchange.Holder, method string, d exchange.Digest,
	part string) (*http.Response, error) {
	header := http.Header{}
	if part != "" {
		header.Set("Range", part)
	}
	resp, done, err := i.Peers.Open(ctx, from.Node, from.Address, method, contract.ImagesBlobsPath+d.String(), header)
	if err != nil {
		return nil, err
	}
	resp.Body = &body{resp.Body, done}
	return resp, nil
}

// body is that of an answer of a member.
type body struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
