package e2e_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

var _ = Describe("a machine that starts without the cloud", Label("offline"), func() {
	It("runs its pods again before the link is back", func(ctx SpecContext) {
		address := deployWeb(ctx, "kept", 8)
		Eventually(ctx, func(g Gomega) { steady(ctx, g) }).WithTimeout(long).WithPolling(poll).Should(Succeed())
		restarted, other := nodesOf(weir)[0], nodesOf(weir)[1]
		names, before := []string{}, map[types.UID]bool{}
		for _, p := range podsOf(ctx, "kept") {
			before[p.UID] = true
			if p.Spec.NodeName == restarted {
				names = append(names, p.Name)
			}
		}
		Expect(names).NotTo(BeEmpty())
		Expect(answering(ctx, restarted)).To(ContainElements(names))

		l := pools.Link(weir)
		l.Cut(link.Both, "")
		DeferCleanup(l.HealAll)
		began := time.Now()
		hub := part(runtime.HubOf(restarted))
		Expect(hub.Kill()).To(Succeed()) // the machine
		Expect(hub.Start(ctx)).To(Succeed())
		AddReportEntry("seconds from the power cut until the hub answers", time.Since(began).Seconds())
		Eventually(ctx, func(g Gomega) {
			g.Expect(answering(ctx, restarted)).To(ContainElements(names))
		}).WithTimeout(long).WithPolling(time.Second).Should(Succeed())
		AddReportEntry("seconds from the power cut until all its pods answer, without the cloud", time.Since(began).Seconds())
		Eventually(ctx, func() error {
			_, err := reach(ctx, other, address)
			return err
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), other)

		l.HealAll()
		Eventually(ctx, func(g Gomega) {
			steady(ctx, g)
			for _, p := range podsOf(ctx, "kept") {
				g.Expect(ready(p)).To(BeTrue(), p.Name)
				g.Expect(p.Status.PodIP).NotTo(BeEmpty())
				g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning), p.Name)
			}
		}).WithTimeout(long).WithPolling(poll).Should(Succeed())
		for _, p := range podsOf(ctx, "kept") {
			Expect(before).To(HaveKey(p.UID), "%s is new: pods of the pool were moved", p.Name)
		}
		for _, node := range allNodes() {
			Eventually(ctx, func() error {
				_, err := reach(ctx, node, address)
				return err
			}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), node)
		}
	}, SpecTimeout(4*long))
})

// askPods prints name and address of each pod on a node that answers at the address that it has now, whatever the API
// says of it: those of the image, and CoreDNS.
const askPods = `for p in $(pgrep -x app; pgrep -x coredns); do
	a=$(nsenter -t "$p" -n ip -4 -o addr show dev eth0 | awk '{split($4, f, "/"); print f[1]}')
	[ -n "$a" ] || continue
	if curl -sf -m 2 -o /dev/null "http://$a:8080" || curl -sf -m 2 -o /dev/null "http://$a:8181/ready"; then
		echo "$(nsenter -t "$p" -u hostname) $a"
	fi
done; true`

// placed are the addresses of the pods that answer on a node, by their names.
func placed(ctx context.Context, node string) (map[string]string, error) {
	out, err := pools.Exec(ctx, node, "sh", "-c", askPods)
	at := map[string]string{}
	for line := range strings.Lines(out) {
		if name, address, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			at[name] = address
		}
	}
	return at, err
}

// answering are the names of the pods that answer on a node.
func answering(ctx context.Context, node string) ([]string, error) {
	at, err := placed(ctx, node)
	return slices.Collect(maps.Keys(at)), err
}
