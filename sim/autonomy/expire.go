package autonomy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

const (
	// lapse is how soon what expires does so.
	lapse = 15 * time.Second
	// tooLong ago has ended what no hub takes any more.
	tooLong = identity.DefaultAllowance + time.Hour
)

// expires reports whether a certificate may have expired: until a hub knows that the cloud is away, it is no longer
// valid.
func (c *column) expires() bool {
	return slices.ContainsFunc(c.s.Faults, func(f scenario.Fault) bool { return f.Action == scenario.Expire })
}

// injectExpiry gives nodes certificates, and a pod a token, that end soon. It is healed by new certificates, as an
// operator would: nobody can ask for one with a certificate that has expired.
func (c *column) injectExpiry(ctx context.Context, f scenario.Fault) error {
	issuer, ok := c.Site.(runtime.Issuer)
	if !ok {
		return errors.New("nothing can be issued again on this runtime")
	}
	c.Note(f.String())
	if err := c.certify(ctx, issuer, lapse); err != nil {
		return err
	}
	if err := c.attempts.expire(ctx, c, issuer); err != nil {
		return err
	}
	if !runner.Slept(ctx, f.For) {
		return ctx.Err()
	}
	c.Note("healed: " + f.String())
	return c.certify(ctx, issuer, 0)
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
