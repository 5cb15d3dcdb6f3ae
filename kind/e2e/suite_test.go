package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/runtime"
)

const (
	switchEnv = "WEIR_TEST_KIND"      // any value: run the specs
	logsEnv   = "WEIR_TEST_KIND_LOGS" // folder of logs

	weir  = "harbour"
	stock = "stock"

	long = 5 * time.Minute // for what real kubelets do on a busy machine
	poll = 500 * time.Millisecond
	// builds is for what a cold machine builds first, once: programs and images.
	builds = 20 * time.Minute
)

// site is what the runtime kind has beyond other runtimes.
type site interface {
	runtime.Site
	runtime.Evidence
	WaitReady(ctx context.Context) error
	CheckWalls(ctx context.Context) error
	LoadApp(ctx context.Context) error
	Exec(ctx context.Context, node string, command ...string) (string, error)
	Follow(ctx context.Context, node string, stdout io.Writer, command ...string) error
}

// sizes are how many workers each pool has.
var sizes = map[string]int{weir: 4, stock: 2}

// It is shared by all specs: they run one after the other, and leave it as they found it.
var (
	pools  site
	client kubernetes.Interface
	failed bool
)

func TestKind(t *testing.T) {
	if os.Getenv(switchEnv) == "" {
		t.Skip("real kubelets need a Docker engine and some minutes: make test-kind")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "pools of real kubelets")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	began := time.Now()
	uplink := runtime.Link{Up: 8_000_000, Down: 8_000_000, RTT: 60 * time.Millisecond}
	all := []runtime.Pool{{Name: weir, Nodes: sizes[weir], Mode: runtime.Weir, Uplink: uplink}}
	if GinkgoLabelFilter() == movedLabel { // its specs need all of a small machine, and nothing of the stock pool
		sizes[stock] = 0
	} else {
		all = append(all, runtime.Pool{Name: stock, Nodes: sizes[stock], Mode: runtime.Stock, Uplink: uplink})
	}
	up, err := (&runtime.Kind{LogDir: os.Getenv(logsEnv)}).Up(ctx, runtime.Topology{
		Pools: all,
		Tools: []string{"kubectl"},
	}, func(m string) { GinkgoWriter.Println(m) })
	Expect(err).NotTo(HaveOccurred())
	pools = up.(site)
	client, err = kubernetes.NewForConfig(pools.Admin())
	Expect(err).NotTo(HaveOccurred())
	Expect(runtime.Start(ctx, pools, pools.Parts()...)).To(Succeed())
	Expect(pools.WaitReady(ctx)).To(Succeed())
	AddReportEntry("seconds from nothing until all nodes are Ready", fmt.Sprintf("%.0f", time.Since(began).Seconds()))
	Expect(pools.LoadApp(ctx)).To(Succeed())
}, NodeTimeout(2*long+builds))

var _ = AfterEach(func() { failed = failed || CurrentSpecReport().Failed() })

var _ = AfterSuite(func(ctx SpecContext) {
	if pools == nil {
		return
	}
	if failed {
		Expect(pools.SaveEvidence(ctx)).To(Succeed())
	}
	Expect(pools.Down(context.WithoutCancel(ctx))).To(Succeed())
}, NodeTimeout(long))

// nodesOf are the nodes of a pool.
func nodesOf(pool string) []string { return runtime.Pool{Name: pool, Nodes: sizes[pool]}.NodeNames() }

func allNodes() []string { return append(nodesOf(weir), nodesOf(stock)...) }

// status is what hubs and coordinators say of themselves, as far as specs read it.
type status struct {
	Role   string `json:"role"`
	Leader string `json:"leader"`
	Images *struct {
		Desk  bool `json:"desk"`
		Pulls int  `json:"pulls"`
	} `json:"images"`
	Resources []struct {
		Resource string `json:"resource"`
		Synced   bool   `json:"synced"`
		Ready    bool   `json:"ready"`
		Version  uint64 `json:"version"`
	} `json:"resources"`
}

func ask(ctx context.Context, id runtime.PartID) (s status, err error) {
	p, err := pools.Part(id)
	if err != nil {
		return s, err
	}
	var raw json.RawMessage
	if err := p.Status(ctx, &raw); err != nil {
		return s, err
	}
	return s, json.Unmarshal(raw, &s)
}

// leader is the node whose hub leads, by the word of the coordinator.
func leader(ctx context.Context) (string, error) {
	s, err := ask(ctx, runtime.CoordinatorOf(weir))
	return s.Leader, err
}

// steady succeeds when the pool with Weir has a leader and fresh caches, and all its parts run.
func steady(ctx context.Context, g Gomega) {
	s, err := ask(ctx, runtime.CoordinatorOf(weir))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Leader).NotTo(BeEmpty(), "nobody leads")
	for _, r := range s.Resources {
		g.Expect(r.Ready).To(BeTrue(), "%s is not fresh in the coordinator", r.Resource)
	}
	for _, n := range nodesOf(weir) {
		s, err := ask(ctx, runtime.HubOf(n))
		g.Expect(err).NotTo(HaveOccurred())
		for _, r := range s.Resources {
			g.Expect(r.Synced).To(BeTrue(), "%s is not synced in the hub of %s", r.Resource, n)
		}
	}
}

func part(id runtime.PartID) runtime.Part {
	GinkgoHelper()
	p, err := pools.Part(id)
	Expect(err).NotTo(HaveOccurred())
	return p
}
