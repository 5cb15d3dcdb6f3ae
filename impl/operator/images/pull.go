package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
)

const (
	// most bounds how many images are asked for at once.
	most = 32
	// usual is for how long a pull may take, since its Job was let run.
	usual = 12 * time.Hour
)

// pull is what weir images pull is asked for.
type pull struct {
	pool, nodes string
	images      []string
	secrets     []string
	deadline    time.Duration
	now, wait   bool
}

func pulls(fs *pflag.FlagSet) commands.Run {
	var p pull
	fs.StringVar(&p.pool, "pool", "", "name of the pool; required")
	fs.StringVar(&p.nodes, "nodes", "one",
		"one: a node pulls, and the others read it in the pool when they need it; all: each node of the pool has it, one "+
			"after the other")
	fs.StringSliceVar(&p.secrets, "pull-secret", nil,
		"name of a Secret in "+contract.ManagerNamespace+" by which kubelets pull, as in imagePullSecrets; repeatable")
	fs.DurationVar(&p.deadline, "deadline", usual, "how long a node may take for one image, before it is given up")
	fs.BoolVar(&p.now, "now", false, "begin at once, whatever spec.images.window of the Pool says, and all together")
	fs.BoolVar(&p.wait, "wait", true, "wait until all are there, and show how far they are")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		p.images = args
		if err := p.check(); err != nil {
			return err
		}
		cluster, v, err := read(ctx, flags, p.pool)
		if err != nil {
			return err
		}
		made, err := p.begin(ctx, cluster, v)
		for _, j := range made {
			fmt.Fprintf(stdout, "%s: Job %s/%s\n", about(j), j.Namespace, j.Name)
		}
		switch {
		case err != nil:
			return err
		case !p.wait:
			return nil
		}
		err = follow(ctx, cluster, p.pool, made, stdout)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("the Jobs go on; end them by: %s", ending(p.pool))
		}
		return err
	}
}

// ending is how a person ends what was begun.
func ending(pool string) string {
	return fmt.Sprintf("kubectl -n %s delete jobs -l %s=%s,%s=%s", contract.ManagerNamespace, contract.NameLabel,
		contract.PreloadName, contract.NodePoolLabel, pool)
}

// check reports what is invalid.
func (p *pull) check() error {
	switch {
	case p.pool == "":
		return cli.Usage("--pool", "", "the name of a pool")
	case p.nodes != "one" && p.nodes != "all":
		return cli.Usage("--nodes", p.nodes, "one or all")
	case p.deadline < time.Minute || p.deadline > 7*24*time.Hour:
		return cli.Usage("--deadline", p.deadline, "1m to 168h")
	case len(p.images) == 0 || len(p.images) > most:
		return cli.Usage("IMAGE", strings.Join(p.images, " "), fmt.Sprintf("1 to %d images", most))
	}
	for _, s := range p.secrets {
		if len(validation.IsDNS1123Subdomain(s)) > 0 {
			return cli.Usage("--pull-secret", s, "the name of a Secret in "+contract.ManagerNamespace)
		}
	}
	all, err := names(p.images)
	if err != nil {
		return err
	}
	for i, n := range all {
		if slices.Contains(all[:i], n) {
			return cli.Usage("IMAGE", p.images[i], "each image once")
		}
	}
	return nil
}

// begin makes a Job for each image and node.
func (p *pull) begin(ctx context.Context, c *commands.Cluster, v *commands.View) (made []*batchv1.Job, err error) {
	var nodes []string
	for _, n := range v.Members(p.pool) {
		if able(n) {
			nodes = append(nodes, n.Name)
		}
	}
	switch {
	case len(nodes) == 0:
		return nil, fmt.Errorf("pool %s has no node that has joined, is Ready and reaches the cloud: weir status -o wide "+
			"--pool %[1]s", p.pool)
	case !p.now && (v.ManagerLease == nil || v.ManagerLease.Spec.HolderIdentity == nil):
		return nil, errors.New("weir-manager, which lets pulls begin, does not run in this cluster: weir check; --now " +
			"begins without it")
	case p.nodes == "one":
		nodes = nodes[:1]
	}
	for _, image := range p.images {
		for _, node := range nodes {
			j := nodejob.Preload{
				Pool: p.pool, Node: node, Image: image, Secrets: p.secrets, Deadline: p.deadline, Now: p.now,
			}.Job()
			if err := c.Create(ctx, j); err != nil {
				return made, fmt.Errorf("make a Job for %s: %w", about(j), err)
			}
			made = append(made, j)
		}
	}
	return made, nil
}

// able reports whether a node can pull now, and has the program of the hub, which the Job runs.
func able(n *corev1.Node) bool {
	is := func(kind corev1.NodeConditionType) bool {
		c := commands.Condition(n, kind)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	return n.DeletionTimestamp.IsZero() && is(corev1.NodeReady) && is(contract.JoinedCondition) &&
		!is(contract.CutOffCondition)
}
