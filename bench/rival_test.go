package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/bench/peer"
	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
)

// small is the traffic scenario, as small as it can be.
const small = `name: pool-cache
description: two nodes, few objects
seed: 20261005
topology:
  pool: {name: harbour, nodes: 2, uplink: {rate: 8Mbit/s, rtt: 20ms}, coordinators: 1}
workload: {services: 4, endpoints: 20, changes: 24, changesPerSecond: 20}
clients: [kube-proxy, coredns, json]
expectations: [pool_bytes_ratio <= 1.5]
`

// TestRival measures Weir's own hub as the peer, by its profile, through all of it: real kube-apiserver, links and
// processes.
func TestRival(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := t.TempDir()
	spawner, err := proc.New()
	if err != nil {
		t.Fatal(err)
	}
	defer spawner.Close()
	commands, err := parts.Find(t.Context(), spawner, nil, func(m string) { t.Log(m) }, parts.HubCommand)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(dir+"/bin", 0o700), os.Symlink(commands[parts.HubCommand], dir+"/bin/weir-hub")); err !=
		nil {
		t.Fatal(err)
	}
	for _, name := range []string{"weir-hub.yaml", "weir-hub-objects.yaml"} {
		data, err := os.ReadFile(filepath.Join("peers", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir+"/bench/peers", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bench/peers", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/pool-cache.yaml", []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := peer.Load(dir + "/bench/peers/weir-hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := Suite{
		Config: Config{Rounds: 1, Progress: func(m string) { t.Log(m) }}, Peer: p, Out: dir + "/out",
		Repeat: "bin/weir bench --peer X",
	}
	s.Testbed = Testbed{Scenarios: dir, Rounds: 2, Parallel: 1, Out: s.Out, Progress: s.Config.Progress}
	report, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range report.Parts[0].Figures {
		got[f.Name] = f.Got()
		if v := f.Got(); v < 0 || v != v {
			t.Errorf("%s: %v", f.Name, v)
		}
	}
	// Each hub alone reads for itself: twice the copy of a pool of two, and less than clients without hubs, of which there
	// are four streams on each.
	alone, pool, direct := got["all bytes over the uplink: weir-hub-alone ÷ reference"],
		got["all bytes over the uplink: hub ÷ reference"], got["all bytes over the uplink: direct ÷ reference"]
	if !(pool < alone && alone < direct && alone > 1.5) {
		t.Errorf("bytes: %.2f with a pool, %.2f with hubs alone, %.2f direct; figures %v", pool, alone, direct, got)
	}
	for _, name := range []string{
		"get of a Node, p50: weir-hub-alone ÷ hub", "largest RssAnon of a hub: weir-hub-alone ÷ hub",
		"list of all EndpointSlices, p50: hub ÷ direct",
	} {
		if got[name] == 0 {
			t.Errorf("no figure %q: %v", name, got)
		}
	}
	if n := got["lists that clients repeated: weir-hub-alone"] + got["lists that clients repeated: hub"]; n > 0 {
		t.Errorf("%v lists were repeated", n)
	}
	text := report.Markdown()
	for _, want := range []string{"# weir-hub-alone beside Weir", "Repeat: `bin/weir bench --peer X`", p.About} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	if _, err := Load(s.Out); err != nil {
		t.Error(err)
	}
}

// TestShown: what a client holds, through lists, streaming lists that begin again, and deletions.
func TestShown(t *testing.T) {
	event := func(kind watch.EventType, key string, hash uint64) client.Op {
		return client.Op{What: client.OpEvent, Type: kind, Item: client.Item{Key: key, Hash: hash}}
	}
	list := func(items ...client.Item) client.Op { return client.Op{What: client.OpList, Items: items} }
	open := client.Op{What: client.OpOpen, Initial: true}
	end := client.Op{What: client.OpInitialEnd}
	for _, c := range []struct {
		name string
		ops  []client.Op
		want string
	}{
		{"nothing", nil, "map[]"},
		{
			"a list and its watch", []client.Op{
				list(client.Item{Key: "a", Hash: 1}, client.Item{Key: "b", Hash: 2}), {What: client.OpOpen},
				event(watch.Modified, "a", 3), event(watch.Deleted, "b", 2),
			}, "map[a:3]",
		},
		{"a streaming list", []client.Op{open, event(watch.Added, "a", 1), end, event(watch.Added, "b", 2)}, "map[a:1 b:2]"},
		{
			"one that is not complete", []client.Op{list(client.Item{Key: "a", Hash: 1}), open, event(watch.Added, "b", 2)},
			"map[a:1]",
		},
		{
			"one that is broken off, and a watch", []client.Op{
				list(client.Item{Key: "a", Hash: 1}), open, event(watch.Added, "b", 2), {What: client.OpOpen},
				event(watch.Modified, "a", 4),
			}, "map[a:4]",
		},
		{
			"a list forgets", []client.Op{list(client.Item{Key: "a", Hash: 1}), list(client.Item{Key: "b", Hash: 2})},
			"map[b:2]",
		},
	} {
		if got := fmt.Sprint(shown(c.ops)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestBehind: a client that shows too little, or something else, is behind; what it was told of last is said.
func TestBehind(t *testing.T) {
	want := map[string]uint64{"a": 1}
	for _, c := range []struct {
		got   map[string]uint64
		equal bool
	}{
		{map[string]uint64{"a": 1}, true}, {map[string]uint64{"a": 2}, false}, {map[string]uint64{}, false},
		{map[string]uint64{"a": 1, "b": 1}, false}, {map[string]uint64{"b": 1}, false},
	} {
		if equal(c.got, want) != c.equal {
			t.Errorf("%v: %v", c.got, !c.equal)
		}
	}
}

// TestRivalFigures: a ratio is of the medians' sides, and CPU time that the kernel did not count gives none.
func TestRivalFigures(t *testing.T) {
	make := func(name string, v float64) *side {
		return &side{
			name: name, synced: time.Duration(v) * time.Second, startBytes: v, bytes: []float64{v, v}, cpu: []float64{v, v},
			events: []float64{1, 1}, lag50: []float64{v, v},
			lag99: []float64{v, v}, get50: []float64{v}, get99: []float64{v}, getCPU: []float64{v}, list50: []float64{v},
			listCPU: []float64{0},
		}
	}
	ours, theirs := make(sideHub, 2), make("other", 6)
	r := &rival{sides: []*side{make(sideReference, 1), make(sideDirect, 4), ours, theirs}}
	r.profile = &peer.Profile{Name: "other"}
	r.peaks.hub, r.peaks.further = map[*side]float64{ours: 10, theirs: 50}, map[*side]float64{ours: 7}
	figures := r.figures()
	find := func(name string) *Figure {
		i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == name })
		if i < 0 {
			return nil
		}
		return &figures[i]
	}
	for name, want := range map[string]float64{
		"all bytes over the uplink: other ÷ reference": 6, "get of a Node, p50: other ÷ direct": 1.5,
		"get of a Node, p50: other ÷ hub": 3, "get of a Node, p50: hub ÷ direct": 0.5,
		"largest RssAnon of a hub: other ÷ hub": 5, "largest RssAnon of the coordinator: hub": 7,
		"CPU of a hub for a get: other ÷ hub": 3,
	} {
		if f := find(name); f == nil || f.Got() != want {
			t.Errorf("%s: %v, want %v", name, f, want)
		}
	}
	if f := find("CPU of a hub for a list: other ÷ hub"); f != nil {
		t.Errorf("a ratio to nothing: %v", f)
	}
}

// TestGuard: a peer that ends while it is measured ends the benchmark, with what it said last, and one that runs on
// does not.
func TestGuard(t *testing.T) {
	for script, lost := range map[string]bool{"echo no memory; exit 3": true, "true": true, "exec sleep 60": false} {
		dir := t.TempDir()
		text := fmt.Sprintf(
			"name: other\nbinary: sh\nargs: [-c, '%s']\nserve: http://127.0.0.1:1\nhealth: http://127.0.0.1:1\n", script)
		if err := os.WriteFile(filepath.Join(dir, "profile.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := peer.Load(filepath.Join(dir, "profile.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		spawner, err := proc.New()
		if err != nil {
			t.Fatal(err)
		}
		defer spawner.Close()
		x, err := p.Start(spawner, peer.Machine{Node: "other-1", CA: os.DevNull, Data: dir}, filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, lose := context.WithCancelCause(t.Context())
		r := &rival{peers: []*peer.Peer{x}, lose: lose}
		r.guard(ctx)
		if !lost {
			lose(nil)
		}
		r.guards.Wait()
		var gone *lostError
		if errors.As(context.Cause(ctx), &gone) != lost {
			t.Errorf("%s: %v", script, context.Cause(ctx))
		}
		if lost && (!strings.Contains(gone.Error(), "while it was measured: other on other-1: exit status") ||
			!strings.Contains(gone.Error(), "profile.yaml")) {
			t.Errorf("%s: %v", script, gone)
		}
	}
}
