package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/invariant"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// stream is one stream of one client on one node.
type stream struct {
	*client.Stream
	node    string
	verdict invariant.Verdict
}

// class is what a client's bytes count as in a pool without Weir: the copies of pool-scope resources, or the node's
// own.
func class(kind string) string {
	if kind == string(scenario.Kubectl) {
		return "node"
	}
	return "pool"
}

// startClients opens the streams of all clients on all nodes of a way.
func (r *run) startClients(ctx context.Context, w *way) error {
	kinds := []string{}
	for _, k := range r.s.Clients {
		kinds = append(kinds, string(k))
	}
	if w.name == report.WayReference {
		kinds = []string{"reference"}
	}
	for _, node := range w.nodes {
		for _, kind := range kinds {
			specs := client.Specs(kind)
			if len(specs) == 0 {
				continue // kubectl runs later
			}
			config, err := r.config(ctx, node, kind)
			if err != nil {
				return err
			}
			opened, err := client.Open(r.watching, config, specs...)
			if err != nil {
				return fmt.Errorf("client %s on %s: %w", kind, node, err)
			}
			for _, s := range opened {
				w.streams = append(w.streams, &stream{Stream: s, node: node})
				r.background.Go(s.Wait)
				r.time.Emit(timeline.Event{
					Lane: timeline.Client, Way: w.name, Node: node, Name: "start",
					Strings: map[string]string{"client": kind, "resource": s.Spec.Resource},
				})
			}
		}
	}
	return nil
}

// config is how a kind of client reaches the API from a node. One that is started again there has the token that it
// had.
func (r *run) config(ctx context.Context, node, kind string) (*rest.Config, error) {
	r.configs.mu.Lock()
	defer r.configs.mu.Unlock()
	key := [2]string{node, kind}
	if c := r.configs.all[key]; c != nil {
		return c, nil
	}
	c, err := r.newConfig(ctx, node, kind)
	if err == nil {
		r.configs.all[key] = c
	}
	return c, err
}

// configs are those that were asked for, by node and kind.
type configs struct {
	mu  sync.Mutex
	all map[[2]string]*rest.Config
}

func (r *run) newConfig(ctx context.Context, node, kind string) (*rest.Config, error) {
	e, err := r.site.Endpoint(node, class(kind))
	if err != nil {
		return nil, err
	}
	identity := "coredns" // the reference reads what CoreDNS may
	if kind != "reference" {
		identity = scenario.ClientKind(kind).Identity()
	}
	token, err := r.site.Token(ctx, identity)
	if err != nil {
		return nil, fmt.Errorf("token of %s: %w", identity, err)
	}
	return e.RESTConfig(token), nil
}

// synced counts the streams that have not had a complete state.
func (w *way) synced() int {
	n := 0
	for _, s := range w.streams {
		if !s.Recording.Synced() {
			n++
		}
	}
	return n
}

// behind counts the streams that have not shown everything.
func (r *run) behind(w *way) int {
	n := 0
	for _, s := range w.streams {
		v, err := r.truth().through(s.Spec)
		if err != nil || !s.Recording.Synced() || !r.truth().listed(s.Stream) || v.Behind(s.Recording.Version()) > 0 {
			n++
		}
	}
	return n
}

// kubectlOn runs kubectl on one node and compares what it shows with what it shows at the cloud.
func (r *run) kubectlOn(ctx context.Context, w *way, node string) error {
	config, err := r.config(ctx, node, string(scenario.Kubectl))
	if err != nil {
		return err
	}
	path, err := r.site.Tool("kubectl")
	if err != nil {
		return err
	}
	get := func(config *rest.Config) (string, error) {
		home, err := os.MkdirTemp("", "weir-kubectl-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(home)
		return client.Kubectl(ctx, path, config, home, "get", "endpointslices", "--all-namespaces", "--no-headers")
	}
	want, err := get(r.site.Admin())
	if err != nil {
		return fmt.Errorf("at the cloud: %w", err)
	}
	began := time.Now()
	got, err := get(config)
	if err != nil {
		return fmt.Errorf("on %s: %w", node, err)
	}
	seconds, rows := time.Since(began).Seconds(), strings.Count(got, "\n")
	if err := client.CompareTables(got, want); err != nil {
		return fmt.Errorf("kubectl on %s does not show what it shows at the cloud: %w", node, err)
	}
	r.time.Emit(timeline.Event{
		Lane: timeline.Client, Way: w.name, Node: node, Name: "kubectl",
		Numbers: map[string]float64{"rows": float64(rows), "seconds": seconds},
	})
	return nil
}

// judge ends all streams and has each judged.
func (r *run) judge(ctx context.Context) error {
	r.stopWatching()
	for _, w := range r.ways {
		for _, s := range w.streams {
			s.Wait()
		}
	}
	if err := r.truth().hold(ctx, r.admin); err != nil { // so that it has all that they saw
		return fmt.Errorf("judge: %w", err)
	}
	for _, w := range r.ways {
		for _, s := range w.streams {
			eras, err := r.truth().eras(s.Stream)
			if err != nil {
				return fmt.Errorf("judge: %w", err)
			}
			s.verdict = invariant.Rules{Batches: r.s.Batches}.JudgeAcross(eras, s.Recording.Ops())
			for cause, n := range s.verdict.Causes {
				r.time.Emit(timeline.Event{
					Lane: timeline.Client, Way: w.name, Node: s.node, Name: "re-listed",
					Numbers: map[string]float64{"times": float64(n)},
					Strings: map[string]string{
						"client": s.Spec.Client, "resource": s.Spec.Resource, "cause": cause, "before": before(s.Recording.Ops()),
					},
				})
			}
			for _, d := range eras[len(eras)-1].View.Stored(s.Stored()) {
				s.verdict.Violations = append(s.verdict.Violations,
					invariant.Violation{Rule: invariant.Complete, Detail: "the informer's store: " + d, At: time.Now()})
			}
		}
	}
	return nil
}

// before is what a client saw before it last listed again: the operations since its last progress, at most five.
func before(ops []client.Op) string {
	for i := len(ops) - 1; i > 0; i-- {
		if ops[i].What != client.OpList && (ops[i].What != client.OpOpen || !ops[i].Initial) {
			continue
		}
		if ops[i-1].What != client.OpError && ops[i-1].What != client.OpClose {
			continue
		}
		seen := make([]string, 0, 5)
		for _, op := range ops[max(i-5, 0):i] {
			seen = append(seen, op.String())
		}
		return strings.Join(seen, "; ")
	}
	return ""
}
