package install_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/kind"
)

// fromTheFormerRelease are specs of an upgrade: what the former revision installs by its own README becomes this
// release.
func fromTheFormerRelease(served *calls) {
	needed := func() {
		if on.sources[before] == "" {
			Skip("revision " + former + " is not in this clone: git fetch --unshallow")
		}
	}

	It("takes the commands of the former release", func(ctx SpecContext) {
		needed()
		install(ctx, before)
		for _, c := range theCommands(on.sources[before])[:3] {
			typed(ctx, c)
		}
		typed(ctx, fmt.Sprintf("kubectl weir pool create barge --leader-hubs 1 && kubectl label node %s %s %s=barge", node(4),
			node(5), contract.NodePoolLabel))
		typed(ctx, "kubectl weir check --wait 5m")
		served.none()
	}, SpecTimeout(2*long))

	It("gets another release, a node of a pool at a time", func(ctx SpecContext) {
		needed()
		meter(ctx)
		var asked [nodes]answers
		asking, stop := context.WithCancel(ctx)
		defer stop()
		var all sync.WaitGroup
		for n := range nodes {
			all.Go(func() { callHub(asking, n+1, asked[n].told) })
		}
		start := metered(ctx)
		for n := range nodes { // what a node and these calls take by themselves
			Eventually(ctx, func() int {
				made, _, _ := asked[n].seen()
				return made
			}, long, poll).Should(BeNumerically(">=", usual), node(n+1))
		}
		var quiet [nodes]int
		for n := range nodes {
			quiet[n], _, _ = asked[n].seen()
		}
		began, bytes := time.Now(), metered(ctx)
		install(ctx, version)
		typed(ctx, "helm upgrade weir charts/weir -n weir-system --reset-then-reuse-values --wait")
		for n := range nodes {
			Eventually(ctx, func() (string, error) {
				return onNode(ctx, n+1, `"$(readlink -f /proc/$(systemctl show -p MainPID --value weir-hub)/exe)" --version`)
			}, 2*long, poll).Should(ContainSubstring(version), node(n+1))
		}
		Eventually(ctx, func() string {
			return typed(ctx,
				"kubectl get events -A --field-selector reason=WeirUpgraded -o jsonpath='{.items[*].involvedObject.name}' | tr ' "+
					"' '\\n' | sort -u | wc -l")
		}, long, poll).Should(Equal(fmt.Sprintln(nodes)))
		typed(ctx, "kubectl weir check --wait 5m")
		took, used := time.Since(began), metered(ctx)
		stop()
		all.Wait()
		AddReportEntry("seconds of the upgrade, 5 nodes", fmt.Sprintf("%.0f", took.Seconds()))
		for n := range nodes {
			name := node(n + 1)
			made, failed, longest := asked[n].seen()
			usually := float64(bytes[name]-start[name]) / float64(quiet[n]) * float64(made-quiet[n])
			again := kind.Relists(lists(ctx, n+1, began))
			fed := hubMetric(ctx, n+1, "weir_hub_relay_source_lists_total")
			say("%s: calls failed by %v", name, asked[n].why)
			AddReportEntry("upgrade of "+name,
				fmt.Sprintf("%.1f s at most between two answers to its kubelet, %d of %d calls failed; %.0f kB more than usual "+
					"between it and kube-apiserver, of %.0f kB; %d lists at kube-apiserver, and %.0f that fed the new hub; %q",
					longest.Seconds(), failed, made, (float64(used[name]-bytes[name])-usually)/1000,
					float64(used[name]-bytes[name])/1000, len(again), fed, again))
			Expect(again).To(BeEmpty(), "clients on %s go on behind what they have", name)
			Expect(fed).To(BeZero(), "the relays of the new hub on %s go on behind what the former one kept", name)
			Expect(hubMetric(ctx, n+1, "weir_hub_relay_source_watches_total")).NotTo(BeZero(), name)
		}
		served.none()
	}, SpecTimeout(4*long))

	It("takes away what the former release wrote on a node", func(ctx SpecContext) {
		needed()
		typed(ctx, fmt.Sprintf("kubectl label node %s %s-", node(5), contract.NodePoolLabel))
		Eventually(ctx, func() string { return files(ctx, 5) }, long, poll).Should(Equal(on.nodeWas[5]))
		served.none()
	}, SpecTimeout(2*long))
}

// usual is how many calls are made to see what they take.
const usual = 200

// answers are those of an API server to a caller.
type answers struct {
	mu           sync.Mutex
	made, failed int
	last         time.Time
	longest      time.Duration  // between two
	why          map[string]int // of failures
}

func (a *answers) told(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made++
	if err != nil {
		a.failed++
		if a.why == nil {
			a.why = map[string]int{}
		}
		a.why[err.Error()]++
		return
	}
	now := time.Now()
	if !a.last.IsZero() {
		a.longest = max(a.longest, now.Sub(a.last))
	}
	a.last = now
}

func (a *answers) seen() (made, failed int, longest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made, a.failed, a.longest
}

// callHub reads the Lease of a worker's Node five times a second, through its hub, as its kubelet does. A caller that
// ends too early is a call that failed.
func callHub(ctx context.Context, n int, told func(error)) {
	url := fmt.Sprintf("https://127.0.0.1:%d/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/%s",
		contract.HubSecurePort, node(n))
	for ctx.Err() == nil {
		err := kind.Call(ctx, machine(n), url, 200*time.Millisecond, 3*time.Second, told, "/etc/weir/node-authority.crt",
			"/var/lib/kubelet/pki/kubelet-client-current.pem")
		if ctx.Err() == nil {
			say("%s: who calls its hub has ended: %v", node(n), err)
			told(fmt.Errorf("who calls has ended: %w", err))
		}
	}
}
