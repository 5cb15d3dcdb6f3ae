package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
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

// class is what a client's bytes count as in a pool without Weir: the copies of pool-scope resources, or the node's own.
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
			opened, err := client.Open(ctx, config, specs...)
			if err != nil {
				return fmt.Errorf("client %s on %s: %w", kind, node, err)
			}
			for _, s := range opened {
				w.streams = append(w.streams, &stream{Stream: s, node: node})
				r.background.Go(s.Wait)
				r.time.Emit(timeline.Event{Lane: timeline.Client, Way: w.name, Node: node, Name: "start", Strings: map[string]string{"client": kind, "resource": s.Spec.Resource}})
			}
		}
	}
	return nil
}

// config is how a kind of client reaches the API from a node.
func (r *run) config(ctx context.Context, node, kind string) (*rest.Config, error) {
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
		v, err := r.truth.through(s.Spec)
		if err != nil || !s.Recording.Synced() || v.Behind(s.Recording.Version()) > 0 {
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
	r.time.Emit(timeline.Event{Lane: timeline.Client, Way: w.name, Node: node, Name: "kubectl", Numbers: map[string]float64{"rows": float64(rows), "seconds": seconds}})
	return nil
}

// truth records the whole history of the cloud, over no link.
type truth struct {
	streams []*client.Stream
	views   map[client.Spec]*invariant.View // once complete
}

func recordTruth(ctx context.Context, admin *rest.Config) (*truth, error) {
	t := &truth{}
	for _, spec := range client.Specs("truth") {
		s, err := client.Start(ctx, admin, spec)
		if err != nil {
			return nil, err
		}
		t.streams = append(t.streams, s)
	}
	return t, nil
}

// synced tells whether the recorders have begun: what happens from then on is in the history.
func (t *truth) synced() bool {
	for _, s := range t.streams {
		if !s.Recording.Synced() {
			return false
		}
	}
	return true
}

// catchUp waits until the recorders hold what the cloud holds; nothing may change any more.
func (t *truth) catchUp(ctx context.Context, api kubernetes.Interface) error {
	if err := t.hold(ctx, api); err != nil {
		return err
	}
	t.views = map[client.Spec]*invariant.View{}
	return nil
}

// hold waits until the recorders hold what the cloud holds now; nothing may change meanwhile.
func (t *truth) hold(ctx context.Context, api kubernetes.Interface) error {
	slices, err := api.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	endpoints, err := api.CoreV1().Endpoints("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := map[string]map[string]string{client.EndpointSlices: {}, client.Endpoints: {}}
	for i := range slices.Items {
		want[client.EndpointSlices][slices.Items[i].Namespace+"/"+slices.Items[i].Name] = slices.Items[i].ResourceVersion
	}
	for i := range endpoints.Items {
		want[client.Endpoints][endpoints.Items[i].Namespace+"/"+endpoints.Items[i].Name] = endpoints.Items[i].ResourceVersion
	}
	poll := time.NewTicker(tick)
	defer poll.Stop()
	for {
		behind := 0
		for _, s := range t.streams {
			h, err := invariant.NewHistory(s.Recording.Ops())
			if err != nil || !h.Holds(want[s.Spec.Resource]) {
				behind++
			}
		}
		if behind == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the recorders of the truth do not show what the cloud has: %w", ctx.Err())
		case <-poll.C:
		}
	}
}

// through is the history as a stream's filter shows it.
func (t *truth) through(spec client.Spec) (*invariant.View, error) {
	key := client.Spec{Resource: spec.Resource, Selector: spec.Selector}
	if v := t.views[key]; v != nil {
		return v, nil
	}
	sel, err := labels.Parse(spec.Selector)
	if err != nil {
		return nil, err
	}
	for _, s := range t.streams {
		if s.Spec.Resource != spec.Resource {
			continue
		}
		h, err := invariant.NewHistory(s.Recording.Ops())
		if err != nil {
			return nil, err
		}
		v := h.Through(sel)
		if t.views != nil {
			t.views[key] = v
		}
		return v, nil
	}
	return nil, fmt.Errorf("no truth of %s", spec.Resource)
}

// judge has every stream judged.
func (r *run) judge() error {
	for _, w := range r.ways {
		for _, s := range w.streams {
			v, err := r.truth.through(s.Spec)
			if err != nil {
				return fmt.Errorf("judge: %w", err)
			}
			s.verdict = invariant.Rules{Batches: r.s.Batches}.Judge(v, s.Recording.Ops())
			for cause, n := range s.verdict.Causes {
				r.time.Emit(timeline.Event{Lane: timeline.Client, Way: w.name, Node: s.node, Name: "re-listed", Numbers: map[string]float64{"times": float64(n)},
					Strings: map[string]string{"client": s.Spec.Client, "resource": s.Spec.Resource, "cause": cause}})
			}
			for _, d := range v.Stored(s.Stored()) {
				s.verdict.Violations = append(s.verdict.Violations, invariant.Violation{Rule: invariant.Complete, Detail: "the informer's store: " + d, At: time.Now()})
			}
		}
	}
	return nil
}
