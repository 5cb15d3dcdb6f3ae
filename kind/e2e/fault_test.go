package e2e_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/sim/runtime"
)

var _ = Describe("under churn", Label("kill"), func() {
	It("outlives its leader and its coordinator", func(ctx SpecContext) {
		address := deployWeb(ctx, "churned", 8)
		Eventually(ctx, func(g Gomega) { steady(ctx, g) }).WithTimeout(long).WithPolling(poll).Should(Succeed())
		stop := churn(ctx, "churned")
		defer stop()

		first, err := leader(ctx)
		Expect(err).NotTo(HaveOccurred())
		By("killing the machine of the leader, " + first)
		hub := part(runtime.HubOf(first))
		Expect(hub.Kill()).To(Succeed())
		var other string
		Eventually(ctx, func(g Gomega) {
			other, err = leader(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(other).NotTo(Or(BeEmpty(), Equal(first)))
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
		// The cloud takes dead endpoints out after 50 s; until then a request may go to one.
		Eventually(ctx, func() error {
			_, err := reach(ctx, other, address)
			return err
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
		Expect(hub.Start(ctx)).To(Succeed())
		Eventually(ctx, func(g Gomega) { steady(ctx, g) }).WithTimeout(long).WithPolling(poll).Should(Succeed())

		By("killing the coordinator")
		coordinator := part(runtime.CoordinatorOf(weir))
		Expect(coordinator.Kill()).To(Succeed())
		for _, n := range nodesOf(weir) {
			Eventually(ctx, func() error { _, err := reach(ctx, n, address); return err }).WithTimeout(time.Minute).WithPolling(
				poll).Should(Succeed(), n)
		}
		Expect(coordinator.Start(ctx)).To(Succeed())
		Eventually(ctx, func(g Gomega) { steady(ctx, g) }).WithTimeout(long).WithPolling(poll).Should(Succeed())

		stop()
		Expect(pools.WaitReady(ctx)).To(Succeed())
		rolledOut(ctx, "churned")
		for _, n := range allNodes() {
			Eventually(ctx, func() error {
				_, err := reach(ctx, n, address)
				return err
			}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), n)
		}
		Expect(pools.CheckWalls(ctx)).To(Succeed())
	}, SpecTimeout(4*long))
})

// churn scales a Deployment up and down until it is stopped, and leaves it as it was.
func churn(ctx context.Context, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		defer GinkgoRecover()
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := scale(ctx, name, 8+4*(i%2)); ctx.Err() == nil {
					Expect(err).NotTo(HaveOccurred())
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		done.Wait()
		Expect(scale(context.WithoutCancel(ctx), name, 8)).To(Succeed())
	})
}
