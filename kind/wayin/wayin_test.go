package wayin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/kind"
)

// talker is a pod on each node of the pool that writes five lines a second.
const talker = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: talker}
spec:
  selector: {matchLabels: {app: talker}}
  template:
    metadata: {labels: {app: talker}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      nodeSelector: {` + contract.NodePoolLabel + `: ` + pool + `}
      containers: [{name: talker, image: ` + appImage + `, imagePullPolicy: Never, args: [talk, 200ms]}]
`

// talkers are something of each of these pods, by the name of its node.
func talkers(ctx context.Context, what string) map[string]string {
	GinkgoHelper()
	all := pairs(typed(ctx, `kubectl get pods -l app=talker -o jsonpath='{range .items[*]}{.spec.nodeName} {`+what+
		`}{"\n"}{end}'`))
	Expect(all).To(HaveLen(nodes))
	return all
}

func podAddresses(ctx context.Context) map[string]string {
	GinkgoHelper()
	return talkers(ctx, ".status.podIP")
}

// heard is since when each Node is Ready. A Node that was not Ready meanwhile is so since another time.
func heard(ctx context.Context) map[string]string {
	GinkgoHelper()
	all := pairs(typed(ctx, `kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name} `+
		`{.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastTransitionTime}`+
		`{"\n"}{end}'`))
	Expect(all).To(And(HaveLen(nodes+1), HaveEach(HavePrefix("True "))))
	return all
}

// leader is the worker whose hub leads, from 1. 0: none does.
func leader(ctx context.Context) int {
	for n := 1; n <= nodes; n++ {
		out, err := machine(n).Exec(ctx, "curl", "-sf", "-m", "3", fmt.Sprintf("http://127.0.0.1:%d%s",
			contract.HubHealthPort, contract.StatusPath))
		var s struct{ Role string }
		if err == nil && json.Unmarshal([]byte(out), &s) == nil && s.Role == "Leader" {
			return n
		}
	}
	return 0
}

var _ = Describe("a pool behind a wall", Ordered, Label("wayin"), func() {
	var (
		pods  map[string]string // by node
		began time.Time         // since when no Node may be lost, and no client may list
		ready map[string]string
	)

	BeforeAll(func(ctx SpecContext) {
		By("running a pod on each node")
		dir, err := on.spawner.Scratch("pods")
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(dir, "talker.yaml")
		Expect(os.WriteFile(file, []byte(talker), 0o644)).To(Succeed())
		typed(ctx, "kubectl apply -f "+file+" && kubectl rollout status daemonset/talker --timeout=3m")
		pods = talkers(ctx, ".metadata.name")
	}, NodeTimeout(2*long))

	It("is out of reach for kubectl, as behind NAT", func(ctx SpecContext) {
		By("showing that all is open without the wall")
		holds(ctx, false)
		tried(ctx, "kubectl logs --tail=3 "+pods[node(1)], "talk ")

		By("building the walls")
		buildWalls(ctx)
		holds(ctx, true)
		connected(ctx)
		for n := 1; n <= nodes; n++ {
			each, cancel := context.WithTimeout(ctx, ends)
			out, err := command(each, "kubectl logs --tail=3 "+pods[node(n)])
			cancel()
			say("logs of %s: %v\n%s", node(n), err, out)
			Expect(err).To(HaveOccurred(), "the wall of %s has a hole: %s", node(n), out)
		}
	}, SpecTimeout(2*long))

	It("is reached by kubectl, once kube-apiserver asks the gate", func(ctx SpecContext) {
		By("giving kube-apiserver an egress selector")
		selectEgress(ctx)
		connected(ctx)
		works(ctx, pods)
		By("attach, and logs that go on")
		attached(ctx, pods[node(1)])
		for n := 1; n <= nodes; n++ {
			s := follow(ctx, "logs", "--follow", "--tail=1", pods[node(n)])
			s.goesOn(ctx)
			s.stop()
		}
		holds(ctx, true)
		typed(ctx, "kubectl weir check --wait 5m")
		began, ready = time.Now(), heard(ctx)
	}, SpecTimeout(4*long))

	killed := func(ctx context.Context, what string, lasts bool, kill func()) {
		GinkgoHelper()
		By("following logs of each node")
		Expect(began).NotTo(BeZero())
		var all []*stream
		for n := 1; n <= nodes; n++ {
			s := follow(ctx, "logs", "--follow", "--tail=1", pods[node(n)])
			defer s.stop()
			all = append(all, s)
		}
		for _, s := range all {
			s.goesOn(ctx)
		}
		By("killing " + what)
		kill()
		for _, s := range all {
			if lasts {
				s.goesOn(ctx)
			} else {
				AddReportEntry("when "+what+" is killed", s.what+" "+s.hangsNot(ctx))
			}
		}
		By("typing all again")
		works(ctx, pods)
		By("waiting until all is as before")
		connected(ctx)
		Expect(heard(ctx)).To(Equal(ready), "a Node was not Ready")
		holds(ctx, true)
	}

	It("stays reachable when the hub that leads is killed", func(ctx SpecContext) {
		var leads int
		Eventually(ctx, func() int { leads = leader(ctx); return leads }, long, poll).ShouldNot(BeZero(), "nobody leads")
		killed(ctx, "the hub that leads, of "+node(leads), false, func() {
			_, err := machine(leads).Exec(ctx, "systemctl", "kill", "--signal=KILL", "weir-hub")
			Expect(err).NotTo(HaveOccurred())
		})
	}, SpecTimeout(4*long))

	for _, x := range []struct {
		program, deployment string
		lasts               bool // connections do
	}{{"weir-gate", "weir-gate", false}, {"weir-manager", "weir-manager", true}} {
		It("stays reachable when "+x.program+" is killed", func(ctx SpecContext) {
			killed(ctx, "all of "+x.program, x.lasts, func() {
				_, err := on.run.Control().Exec(ctx, "pkill", "-9", "-x", x.program)
				Expect(err).NotTo(HaveOccurred(), "no process is "+x.program)
			})
			typed(ctx, "kubectl -n kube-system rollout status deployment/"+x.deployment+" --timeout=5m")
		}, SpecTimeout(4*long))
	}

	It("has lost no Node, and no client lists again", func(ctx SpecContext) {
		Expect(began).NotTo(BeZero())
		typed(ctx, "kubectl weir check --wait 5m")
		Expect(heard(ctx)).To(Equal(ready), "a Node was not Ready")
		for n := 1; n <= nodes; n++ {
			all, err := on.run.Lists(ctx, machine(n), began)
			Expect(err).NotTo(HaveOccurred())
			say("lists of %s:\n%s", node(n), strings.Join(all, "\n"))
			Expect(kind.Relists(all)).To(BeEmpty(), "clients on %s go on behind what they have", node(n))
		}
	}, SpecTimeout(2*long))
})
