package autonomy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

const (
	// lapse is how soon what expires does so.
	lapse = 15 * time.Second
	// tooLong ago has ended what no hub takes any more.
	tooLong = identity.DefaultAllowance + time.Hour
)

// Expire implements scenario.Issuers. It is healed as an operator would: nobody can ask for a certificate with one that
// has expired.
func (c *column) Expire(ctx context.Context) (scenario.Going, error) {
	issuer, ok := c.Site.(runtime.Issuer)
	if !ok {
		return scenario.Going{}, errors.New("nothing can be issued again on this runtime")
	}
	if err := c.certify(ctx, issuer, lapse); err != nil {
		return scenario.Going{}, err
	}
	return scenario.Going{
		Heal: func(ctx context.Context) error { return c.certify(ctx, issuer, 0) },
	}, c.attempts.expire(ctx, c, issuer)
}

// certify gives all nodes certificates. Kubelets read theirs when they start.
func (c *column) certify(ctx context.Context, issuer runtime.Issuer, life time.Duration) error {
	for _, node := range c.nodes {
		config, err := issuer.Certify(node, life)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.kubelets[node] = config
		c.mu.Unlock()
		kubelet, err := c.Site.Part(runtime.KubeletOf(node))
		if err != nil {
			return err
		}
		if err := kubelet.Stop(ctx); err != nil {
			return err
		}
		if err := kubelet.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// expire gives the first node's pod a token that ends soon, and has it read; and somebody a token and a certificate
// that have ended long ago.
func (a *attempts) expire(ctx context.Context, c *column, issuer runtime.Issuer) error {
	node, now := c.nodes[0], time.Now()
	own, err := issuer.Retime(a.own, now.Add(lapse))
	if err != nil {
		return err
	}
	if code, err := try(ctx, bearer(c.kubelet(node), own), configMapPath); code != http.StatusOK {
		return fmt.Errorf("a pod of %s reads its ConfigMap with a token that ends soon: %d, %w", node, code, err)
	}
	old, err := issuer.Retime(own, now.Add(-tooLong))
	if err != nil {
		return err
	}
	stray, err := issuer.Stray(node, -tooLong)
	c.mu.Lock()
	defer c.mu.Unlock()
	a.own, a.old, a.stray = own, old, stray
	return err
}
