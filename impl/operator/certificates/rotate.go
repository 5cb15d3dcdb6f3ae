package certificates

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

const (
	rotateAnswer = 2 * time.Minute // of weir-manager, which looks each 30 s
	rotatePoll   = time.Second
)

// rotate is weir pki rotate, which names the pool by a flag.
func rotate(fs *pflag.FlagSet) commands.Run {
	pool := fs.String("pool", "", "name of the pool; required")
	var r rotation
	r.bind(fs)
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		if *pool == "" {
			return cli.Usage("--pool", "", "the name of a pool")
		}
		return r.run(ctx, *pool, stdout)
	}
}

// RotatePool is weir pool rotate, which names it by an argument.
func RotatePool(fs *pflag.FlagSet) commands.Run {
	var r rotation
	r.bind(fs)
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		return r.run(ctx, args[0], stdout)
	}
}

// rotation replaces the authority of a pool.
type rotation struct {
	cluster commands.ClusterFlags
	plan    pki.Plan
	lost    bool
	stolen  bool
	follow  bool
}

func (r *rotation) bind(fs *pflag.FlagSet) {
	usual := pki.Usual()
	fs.DurationVar(&r.plan.Settle, "settle", usual.Settle,
		fmt.Sprintf("how long the next authority is trusted before it signs: all that verify have to hear of it "+
			"meanwhile; %s to %s", pki.LeastSettle, pki.MostSettle))
	fs.DurationVar(&r.plan.Overlap, "overlap", usual.Overlap,
		fmt.Sprintf("how long the one before is trusted after that: a node that is away for all of this comes back by its "+
			"connection to the cloud; %s to %s",
			pki.LeastOverlap, pki.MostOverlap))
	fs.BoolVar(&r.lost, "lost-key", false,
		"the key is lost: nobody can vouch for the next authority, and hubs trust it because the cloud says so; a "+
			"coordinator that has its own file of authorities needs the new one")
	fs.BoolVar(&r.stolen, "stolen-key", false,
		"the key was stolen: nothing that it signed is valid any more, and the denylist begins again; every hub and "+
			"coordinator gets another certificate, over the cloud")
	fs.BoolVar(&r.follow, "follow", false, "wait until the next authority signs")
	r.cluster = commands.BindCluster(fs)
	fs.Lookup("kubeconfig").Usage = "kubeconfig file of the cluster, of a user that may read and update ConfigMaps in " +
		"weir-pki; default: as kubectl"
}

// run asks weir-manager for it, and tells how far it is.
func (r *rotation) run(ctx context.Context, pool string, stdout io.Writer) error {
	if r.stolen && r.lost {
		return cli.Usage("--stolen-key", "true",
			"without --lost-key: a key that was stolen is not used any more, be it there or not")
	}
	if err := r.plan.Check(); err != nil {
		var m *pki.MismatchError
		if errors.As(err, &m) {
			return cli.Usage("--"+m.Field, m.Value, m.Allowed)
		}
		return err
	}
	config, err := r.cluster.ToRESTConfig()
	if err != nil {
		return cli.Usage("--kubeconfig", *r.cluster.KubeConfig, strings.Join(strings.Fields(err.Error()), " "))
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return cli.Usage("--kubeconfig", *r.cluster.KubeConfig, err.Error())
	}
	o := trust.Order{
		ID: strings.ToLower(rand.Text())[:10], Settle: r.plan.Settle.String(), Overlap: r.plan.Overlap.String(),
		LostKey: r.lost, StolenKey: r.stolen,
	}
	if err := AskRotation(ctx, c, pool, o); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "pool %s: asked for a rotation\n", pool)
	return watchRotation(ctx, c, pool, o.ID, r.follow, stdout)
}

// watchRotation prints each step until weir-manager has answered, or until the next authority signs.
func watchRotation(ctx context.Context, c kubernetes.Interface, pool, order string, follow bool,
	stdout io.Writer) error {
	answer, stop := context.WithTimeout(ctx, rotateAnswer)
	defer stop()
	tick := time.NewTicker(rotatePoll)
	defer tick.Stop()
	for said := ""; ; {
		p, err := Rotation(ctx, c, pool)
		switch answered := err == nil && p.Order == order; {
		case answered && p.Refused != "":
			return fmt.Errorf("pool %s: weir-manager refuses: %s", pool, p.Refused)
		case answered && p.Step != said:
			said = p.Step
			fmt.Fprintf(stdout, "pool %s: %s\n", pool, sentence(p))
			if waits := p.Step == trust.Prepared || p.Step == trust.Replaced; !follow || !waits {
				return nil
			}
		case !answered && answer.Err() != nil:
			return fmt.Errorf("pool %s: weir-manager has not answered for %s: is it there, with --certificates=sign?", pool,
				rotateAnswer)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sentence tells a person how far a rotation is.
func sentence(p trust.Progress) string {
	due := p.Due.Format(time.RFC3339)
	switch p.Step {
	case trust.Prepared:
		return fmt.Sprintf("authority %s is trusted, and signs in place of %s from %s on", p.Next, p.Signer, due)
	case trust.Replaced:
		return fmt.Sprintf("authority %s is in the place of the one before, and signs from %s on", p.Signer, due)
	case trust.Switched:
		return fmt.Sprintf("authority %s signs; the one before is trusted until %s", p.Signer, due)
	}
	return fmt.Sprintf("authority %s signs, and ends at %s", p.Signer, p.Ends.Format(time.RFC3339))
}
