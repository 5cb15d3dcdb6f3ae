package e2e_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/sim/link"
)

var _ = Describe("a pool", func() {
	It("comes up behind its hubs, with no way to the cloud but the link", Label("pool"), func(ctx SpecContext) {
		Eventually(ctx, func(g Gomega) { steady(ctx, g) }).WithTimeout(long).WithPolling(poll).Should(Succeed())
		Eventually(ctx, func(g Gomega) {
			pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			for _, p := range pods.Items {
				g.Expect(ready(p)).To(BeTrue(), p.Name)
			}
		}).WithTimeout(long).WithPolling(poll).Should(Succeed())
		Expect(pools.CheckWalls(ctx)).To(Succeed())
	}, SpecTimeout(2*long))

	It("reaches a Service from every worker, by address and by name", Label("service"), func(ctx SpecContext) {
		address := deployWeb(ctx, "web", int32(len(allNodes())))
		for _, node := range allNodes() {
			Eventually(ctx, func() error {
				_, err := reach(ctx, node, address)
				return err
			}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), node)
		}
		on := map[string]bool{}
		for _, p := range podsOf(ctx, "web") {
			on[p.Spec.NodeName] = true
			Eventually(ctx, func() error {
				_, err := kubectl(ctx, nodesOf(weir)[0], "exec", p.Name, "--", "/app", "get",
					"http://web.default.svc.cluster.local")
				return err
			}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), p.Name)
		}
		Expect(on).To(HaveLen(len(allNodes())))
	}, SpecTimeout(2*long))

	It("restarts a hundred pods under a slow uplink", Label("restart"), func(ctx SpecContext) {
		address := deployWeb(ctx, "many", 100)
		slow := map[string]int64{}
		for _, pool := range []string{weir, stock} {
			l := pools.Link(pool)
			l.SetRate(link.Both, 1_000_000)
			DeferCleanup(func() { l.SetRate(link.Both, 8_000_000) })
			slow[pool] = link.Sum(l.Counters(), func(c link.Counter) bool { return c.Dir == link.Down })
		}
		restart := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"weir.test/restarted":%q}}}}}`, time.Now())
		_, err := client.AppsV1().Deployments(namespace).Patch(ctx, "many", types.StrategicMergePatchType, []byte(restart),
			metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		rolledOut(ctx, "many")
		for _, node := range allNodes() {
			Eventually(ctx, func(g Gomega) {
				pod, err := reach(ctx, node, address)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(pod).NotTo(BeEmpty())
			}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), node)
		}
		for _, pool := range []string{weir, stock} {
			bytes := link.Sum(pools.Link(pool).Counters(), func(c link.Counter) bool { return c.Dir == link.Down }) - slow[pool]
			AddReportEntry("kB from cloud to pool "+pool+" for the restart of 100 pods", bytes/1000)
		}
	}, SpecTimeout(6*long))

	It("lives through two minutes without the cloud", Label("cut"), func(ctx SpecContext) {
		address := deployWeb(ctx, "lasting", 4)
		before := map[types.UID]bool{}
		for _, p := range podsOf(ctx, "lasting") {
			before[p.UID] = true
		}
		for _, node := range nodesOf(weir) { // what the cloud told last has come over the link
			Eventually(ctx, func() error { _, err := reach(ctx, node, address); return err }).WithTimeout(
				time.Minute).WithPolling(poll).Should(Succeed(), node)
		}
		l := pools.Link(weir)
		l.Cut(link.Both, "")
		DeferCleanup(l.HealAll)
		Consistently(ctx, func(g Gomega) {
			for _, node := range nodesOf(weir) {
				_, err := reach(ctx, node, address)
				g.Expect(err).NotTo(HaveOccurred(), node)
			}
		}).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
		l.HealAll()
		Eventually(ctx, func(g Gomega) {
			steady(ctx, g)
			nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			for _, n := range nodes.Items {
				for _, c := range n.Status.Conditions {
					if c.Type == corev1.NodeReady {
						g.Expect(c.Status).To(Equal(corev1.ConditionTrue), n.Name)
					}
				}
			}
		}).WithTimeout(long).WithPolling(poll).Should(Succeed())
		for _, p := range podsOf(ctx, "lasting") {
			Expect(before).To(HaveKey(p.UID), "%s is new: pods of the pool were moved", p.Name)
		}
		for _, node := range allNodes() {
			Eventually(ctx, func() error { _, err := reach(ctx, node, address); return err }).WithTimeout(time.Minute).
				WithPolling(poll).Should(Succeed(), node)
		}
	}, SpecTimeout(3*long))
})

func ready(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
