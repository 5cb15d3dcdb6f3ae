package skew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	poolName  = "edge"
	changes   = 60
	endpoints = 100
)

// pool is one whose parts have the versions of a mixture.
type pool struct {
	t      *testing.T
	ctx    context.Context
	site   runtime.Site
	admin  kubernetes.Interface
	nodes  []string
	tokens map[string]string // of kube-proxy, by node
	builds map[version]parts.Binaries
	of     map[runtime.PartID]version
	dir    string
	// described: weir-manager tells the pool about itself, by objects whose addresses kube-apiserver takes: only root may
	// add the route of those.
	described bool
	links     map[runtime.PartID]string // the program of each part is a link, as it is on a node
	watches   map[string]<-chan watch.Event
	made      []string // EndpointSlices, by name
	last      float64  // version of the last
}

func newPool(ctx context.Context, t *testing.T, m mixture, builds map[version]parts.Binaries) *pool {
	t.Helper()
	p := &pool{
		t: t, ctx: ctx, described: os.Geteuid() == 0, builds: builds, tokens: map[string]string{},
		links: map[runtime.PartID]string{}, watches: map[string]<-chan watch.Event{},
	}
	topology := runtime.Pool{
		Name: poolName, Nodes: nodes, Mode: runtime.Weir,
		Uplink: runtime.Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond},
		Enrols: true, LeaderHubs: 2, HubFlags: parts.Flags{"heartbeat-interval": "2s", "heartbeat-timeout": "1s"},
		Programs: map[runtime.PartID]string{},
	}
	p.nodes = topology.NodeNames()
	p.of = m.all(p)
	dir := t.TempDir()
	for id := range p.of {
		p.links[id] = filepath.Join(dir, strings.ReplaceAll(string(id), "/", "-"))
		topology.Programs[id] = p.links[id]
		p.point(id)
	}
	p.dir = dir
	local := &runtime.Local{LogDir: filepath.Join(dir, "logs"), Binaries: parts.Binaries{
		parts.ManagerCommand: p.links[runtime.Manager], parts.HubCommand: builds[today][parts.HubCommand],
		parts.CoordinatorCommand: builds[today][parts.CoordinatorCommand],
	}}
	var err error
	p.site, err = local.Up(ctx, runtime.Topology{
		Manager: true, Described: p.described, Tools: []string{cloud.Kubectl}, Pools: []runtime.Pool{topology},
	}, func(string) {})
	check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			p.tellLogs(local.LogDir)
		}
		if err := p.site.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	p.admin, err = kubernetes.NewForConfig(p.site.Admin())
	check(t, err)
	p.install()
	for _, name := range p.nodes {
		p.tokens[name], err = p.site.Token(ctx, "kube-proxy")
		check(t, err)
	}
	return p
}

// point leads the link of a part to its version.
func (p *pool) point(id runtime.PartID) {
	p.t.Helper()
	command := map[string]string{
		"hub": parts.HubCommand, "coordinator": parts.CoordinatorCommand, "manager": parts.ManagerCommand,
	}[id.Kind()]
	if err := os.Remove(p.links[id]); err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	check(p.t, os.Symlink(p.builds[p.of[id]][command], p.links[id]))
}

// tellLogs prints what each part complained of.
func (p *pool) tellLogs(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, f := range files {
		if strings.HasPrefix(filepath.Base(f), "kube-") {
			continue
		}
		data, _ := os.ReadFile(f)
		var said []string
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") ||
				strings.Contains(line, "\"WARN\"") || strings.Contains(line, "\"ERROR\"") {
				said = append(said, line)
			}
		}
		p.t.Logf("%s:\n%s", filepath.Base(f), strings.Join(said[max(0, len(said)-15):], ""))
	}
}

// start starts all parts of Weir.
func (p *pool) start() {
	p.t.Helper()
	var ids []runtime.PartID
	for id := range p.of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	check(p.t, runtime.Start(p.ctx, p.site, ids...))
}

func (p *pool) part(id runtime.PartID) runtime.Part {
	p.t.Helper()
	part, err := p.site.Part(id)
	check(p.t, err)
	return part
}

// state is what is read of the coordinator.
type state struct {
	Leader string `json:"leader"`
	Ready  bool   `json:"ready"`
}

// hubState is what is read of a hub.
type hubState struct {
	Resources []struct {
		Resource string         `json:"resource"`
		Source   string         `json:"source"`
		Lists    map[string]int `json:"lists"`
		Objects  int            `json:"objects"`
	} `json:"resources"`
}

func (p *pool) state() (s state) {
	_ = p.part(runtime.CoordinatorOf(poolName)).Status(p.ctx, &s)
	return s
}

func (p *pool) hub(name string) (s hubState) {
	_ = p.part(runtime.HubOf(name)).Status(p.ctx, &s)
	return s
}

// ready waits until the pool shares: one hub leads, and all others read the coordinator.
func (p *pool) ready() {
	p.t.Helper()
	p.wait("the pool to share", func() string {
		s := p.state()
		if !s.Ready {
			return fmt.Sprintf("the coordinator is %+v", s)
		}
		for _, name := range p.nodes {
			want := map[bool]string{true: "cloud", false: "coordinator"}[name == s.Leader]
			h := p.hub(name)
			if len(h.Resources) == 0 {
				return name + " shares nothing"
			}
			for _, r := range h.Resources {
				if r.Source != want {
					return fmt.Sprintf("%s leads, and %s (%s) reads %s from %q", s.Leader, name, p.of[runtime.HubOf(name)], r.Resource,
						r.Source)
				}
			}
		}
		return ""
	})
}

// wait waits until nothing is missing.
func (p *pool) wait(what string, missing func() string) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		last := missing()
		if last == "" {
			return
		}
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			p.t.Fatalf("waiting for %s: %v: %s", what, p.ctx.Err(), last)
		case <-deadline:
			p.t.Fatalf("timeout waiting for %s: %s", what, last)
		}
	}
}

// client is kube-proxy of a node.
func (p *pool) client(name string) kubernetes.Interface {
	p.t.Helper()
	endpoint, err := p.site.Endpoint(name, "kube-proxy")
	check(p.t, err)
	c, err := kubernetes.NewForConfig(endpoint.RESTConfig(p.tokens[name]))
	check(p.t, err)
	return c
}

// watchAll opens a watch at each hub.
func (p *pool) watchAll() {
	p.t.Helper()
	for _, name := range p.nodes {
		p.watch(name)
	}
}

func (p *pool) watch(name string) {
	p.t.Helper()
	w, err := p.client(name).DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).Watch(p.ctx, metav1.ListOptions{})
	check(p.t, err)
	p.t.Cleanup(w.Stop)
	p.watches[name] = w.ResultChan()
}

// change writes an EndpointSlice in the cloud.
func (p *pool) change() {
	p.t.Helper()
	name := fmt.Sprintf("slice-%d", len(p.made)+1)
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4}
	for i := range endpoints {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", len(p.made)%250, i/250, i%250)},
		})
	}
	s, err := p.admin.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).Create(p.ctx, s, metav1.CreateOptions{})
	check(p.t, err)
	p.last, err = strconv.ParseFloat(s.ResourceVersion, 64)
	check(p.t, err)
	p.made = append(p.made, name)
}

// arrives waits until the last change has come on the watches of nodes, which go on all the while.
func (p *pool) arrives(at ...string) {
	p.t.Helper()
	last := p.made[len(p.made)-1]
	for _, name := range at {
		for arrived := false; !arrived; {
			select {
			case ev, open := <-p.watches[name]:
				if !open || ev.Type == watch.Error {
					p.t.Fatalf("the watch at %s (%s) ended: %v", name, p.of[runtime.HubOf(name)], ev.Object)
				}
				o, ok := ev.Object.(*discoveryv1.EndpointSlice)
				arrived = ok && o.Name == last
			case <-p.ctx.Done():
				p.t.Fatalf("%s did not come to %s (%s): %v", last, name, p.of[runtime.HubOf(name)], p.ctx.Err())
			}
		}
	}
}
