package install_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/watch"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	flips  = 30
	flipIn = time.Second
)

// heartbeats are those of kubelets, as kube-apiserver has them: by them, a kubelet shows that it has an API server.
type heartbeats struct {
	mu      sync.Mutex
	last    map[string]time.Time
	longest map[string]time.Duration // between two
	ran     map[string]time.Duration // how long each Lease is good for
	err     error
	watched sync.WaitGroup
}

// follow watches them until the context ends.
func (h *heartbeats) follow(ctx context.Context, c kubernetes.Interface) {
	GinkgoHelper()
	leases := c.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, err := leases.List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	h.take(now.Items...)
	changes, err := watch.NewRetryWatcherWithContext(ctx, now.ResourceVersion,
		&cache.ListWatch{WatchFuncWithContext: leases.Watch})
	Expect(err).NotTo(HaveOccurred())
	h.watched.Go(func() {
		for e := range changes.ResultChan() {
			if l, ok := e.Object.(*coordinationv1.Lease); ok {
				h.take(*l)
			} else {
				h.lost(e)
			}
		}
	})
}

// lost keeps why changes were not seen.
func (h *heartbeats) lost(e apiwatch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = fmt.Errorf("the watch of Leases: %s: %v", e.Type, e.Object)
}

func (h *heartbeats) take(all ...coordinationv1.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range all {
		l := &all[i]
		if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		at := l.Spec.RenewTime.Time
		if was, ok := h.last[l.Name]; ok {
			h.longest[l.Name] = max(h.longest[l.Name], at.Sub(was))
		}
		h.last[l.Name], h.ran[l.Name] = at, time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second
	}
}

// whateverLabelsSay is a spec of people who change their minds.
func whateverLabelsSay(served *calls) {
	It("leaves no node without an API server, whatever its label says", func(ctx SpecContext) {
		admin, err := on.run.Admin()
		Expect(err).NotTo(HaveOccurred())
		h := &heartbeats{last: map[string]time.Time{}, longest: map[string]time.Duration{}, ran: map[string]time.Duration{}}
		following, stop := context.WithCancel(ctx)
		defer stop()
		h.follow(following, kubernetes.NewForConfigOrDie(admin))
		label := func(n int, pool string) {
			GinkgoHelper()
			typed(ctx, fmt.Sprintf("kubectl label --overwrite node %s %s=%s", node(n), contract.NodePoolLabel, pool))
		}

		By("two nodes change places, one gets a label of no pool, and one another label each second")
		label(2, "barge")
		label(4, "harbour")
		label(1, "nowhere")
		again := time.NewTicker(flipIn)
		defer again.Stop()
		for i := range flips {
			if i%2 == 0 {
				typed(ctx, fmt.Sprintf("kubectl label node %s %s-", node(5), contract.NodePoolLabel))
			} else {
				label(5, "barge")
			}
			<-again.C
		}
		out, err := command(ctx, "kubectl weir check --node "+node(1))
		Expect(err).To(HaveOccurred(), "%s is in a pool that nobody made", node(1))
		Expect(out).To(ContainSubstring("nowhere"))
		out, err = onNode(ctx, 1, "/root/weir node status")
		Expect(err).NotTo(HaveOccurred(), "%s goes on through the hub that it has: %s", node(1), out)
		label(1, "harbour")
		typed(ctx, "kubectl weir check --wait 5m")
		members(ctx, map[string]int{"harbour": 3, "barge": 2})

		By("no heartbeat came late")
		stop()
		h.watched.Wait()
		Expect(h.err).NotTo(HaveOccurred())
		for n := range nodes {
			name := node(n + 1)
			AddReportEntry("while labels change: seconds between two heartbeats of "+name+" at most",
				fmt.Sprintf("%.0f of %.0f", h.longest[name].Seconds(), h.ran[name].Seconds()))
			Expect(h.longest[name]).To(And(BeNumerically(">", 0), BeNumerically("<", h.ran[name])), "%s: its Lease ran out",
				name)
			Expect(time.Since(h.last[name])).To(BeNumerically("<", h.ran[name]), "%s: its Lease ran out", name)
		}
		served.none()
	}, SpecTimeout(3*long))
}
