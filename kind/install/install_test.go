package install_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/kind"
)

// appImage is what the pods of the Deployment run.
const appImage = "weir.dev/app:test"

// web is a Deployment over all nodes, and its Service. A pod serves for five seconds after it was told to end, as pods
// that lose no call do: rules follow later than that, in any cluster.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 15
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
      containers: [{name: web, image: ` + appImage +
	`, imagePullPolicy: Never, lifecycle: {preStop: {sleep: {seconds: 5}}}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// theCommands are those that the README of some sources types to install Weir, one by one.
func theCommands(sources string) []string {
	GinkgoHelper()
	all := commandsOf(filepath.Join(sources, "README.md"), "Install")
	Expect(all).To(HaveLen(5), "the README promises five")
	return all
}

// commandsOf are those that a section of a document types.
func commandsOf(document, heading string) []string {
	GinkgoHelper()
	text, err := os.ReadFile(document)
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	Expect(found).To(BeTrue(), heading)
	section, _, _ = strings.Cut(section, "\n## ")
	var all []string
	for line := range strings.Lines(section) {
		if c, ok := strings.CutPrefix(line, "    "); ok {
			c, _, _ = strings.Cut(c, " # ")
			all = append(all, strings.TrimSpace(c))
		}
	}
	return all
}

// calls are those to the Deployment.
type calls struct {
	mu    sync.Mutex
	made  int
	wrong []string
}

func (c *calls) told(from string) func(error) {
	return func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made++
		if err != nil {
			c.wrong = append(c.wrong, fmt.Sprintf("%s from %s: %v", time.Now().Format(time.TimeOnly), from, err))
		}
	}
}

func (c *calls) seen() (made int, wrong []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, slices.Clone(c.wrong)
}

// forget begins to count again.
func (c *calls) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made, c.wrong = 0, nil
}

// none says that no call has failed so far.
func (c *calls) none() {
	GinkgoHelper()
	made, wrong := c.seen()
	say("%d calls, %d failed", made, len(wrong))
	Expect(wrong).To(BeEmpty(), "of %d calls", made)
}

// page is what weir status -o json says, as far as specs read it.
type page struct {
	Pools []struct {
		Name                   string
		Members, Heard, Joined int
		CutOff                 int `json:"cutOff"`
		Told                   int `json:"hubsTold"`
	}
}

func status(ctx context.Context) page {
	GinkgoHelper()
	var p page
	Expect(json.Unmarshal([]byte(typed(ctx, "kubectl weir status -o json")), &p)).To(Succeed())
	return p
}

var _ = Describe("an installation", Ordered, Label("install"), func() {
	var (
		served    calls
		stopCalls context.CancelFunc
		calling   sync.WaitGroup
	)

	BeforeAll(func(ctx SpecContext) {
		addMetricsServer(ctx)
		Expect(os.WriteFile(filepath.Join(on.dir, "web.yaml"), []byte(web), 0o644)).To(Succeed())
		typed(ctx, "kubectl apply -f web.yaml && kubectl rollout status deployment/web --timeout=3m")
		on.address = strings.TrimSpace(typed(ctx, "kubectl get service web -o jsonpath={.spec.clusterIP}"))
		inside, stop := context.WithCancel(context.Background())
		stopCalls = stop
		for from, m := range map[string]int{"the cloud": 0, node(1): 1, node(4): 4} {
			box := on.run.Control()
			if m > 0 {
				box = machine(m)
			}
			Eventually(ctx, func() error {
				_, err := box.Exec(ctx, "/usr/local/bin/weir-app", "get", "http://"+on.address)
				return err
			}, long, poll).Should(Succeed())
			calling.Go(func() {
				if err := kind.Call(inside, box, "http://"+on.address, 200*time.Millisecond, 3*time.Second,
					served.told(from)); err != nil {
					served.told(from)(err)
				}
			})
		}
		typed(ctx, "kubectl wait --for=condition=Available apiservice/v1beta1.metrics.k8s.io --timeout=3m")
		on.nodeWas = map[int]string{}
		for n := range nodes {
			on.nodeWas[n+1] = files(ctx, n+1)
		}
		on.clusterWas = objects(ctx)
	}, NodeTimeout(2*long))

	AfterAll(func() {
		if stopCalls != nil {
			stopCalls()
		}
		calling.Wait()
	})

	It("takes the commands of the README", func(ctx SpecContext) {
		commands := theCommands(on.root)
		began := time.Now()
		for _, c := range commands {
			typed(ctx, c)
		}
		AddReportEntry("seconds of the five commands, 3 nodes", fmt.Sprintf("%.0f", time.Since(began).Seconds()))
		began = time.Now()
		typed(ctx, "kubectl weir check")
		AddReportEntry("seconds of weir check, 3 nodes", fmt.Sprintf("%.1f", time.Since(began).Seconds()))
		byDigest(ctx, on.run.Control().Exec, "weir-manager")
		byDigest(ctx, machine(1).Exec, "weir-installer")
		var at int
		_, err := fmt.Sscanf(typed(ctx, "kubectl -n kube-system get pods -l app.kubernetes.io/name="+contract.CoordinatorPods+
			" -o jsonpath={.items[0].spec.nodeName}"), "edge-%d", &at)
		Expect(err).NotTo(HaveOccurred())
		byDigest(ctx, machine(at).Exec, "weir-coordinator")
		served.none()
	}, SpecTimeout(3*long))

	It("serves a second pool, which has no coordinator", func(ctx SpecContext) {
		typed(ctx, "kubectl weir pool create barge --leader-hubs 1")
		typed(ctx, fmt.Sprintf("kubectl label node %s %s %s=barge", node(4), node(5), contract.NodePoolLabel))
		typed(ctx, "kubectl weir check --wait 5m")
		say("%s", typed(ctx, "kubectl weir status -o wide; kubectl get np,pools.weir.dev"))
		members(ctx, map[string]int{"harbour": 3, "barge": 2})
		served.none()
	}, SpecTimeout(2*long))

	It("shows its users how it is", func(ctx SpecContext) {
		members(ctx, map[string]int{"harbour": 3, "barge": 2})
		prints(ctx, "kubectl weir check", "check.golden")
		prints(ctx, "kubectl weir status -o wide", "status.golden")
	}, SpecTimeout(long))

	It("has nothing on its nodes that bypasses a hub", func(ctx SpecContext) {
		for n := range nodes {
			Eventually(ctx, func() (string, error) { return onNode(ctx, n+1, "/root/weir check --here") }, long, poll).ShouldNot(
				MatchRegexp(`(?m)^×`))
		}
	}, SpecTimeout(2*long))

	podSpecs()

	It("lets one hub of each pool read the cloud, and another one when that is killed", func(ctx SpecContext) {
		for _, members := range [][]int{{1, 2, 3}, {4, 5}} {
			var leads []int
			Eventually(ctx, func() []int {
				leads = nil
				for _, n := range members {
					if source(ctx, n) == "cloud" {
						leads = append(leads, n)
					}
				}
				return leads
			}, long, poll).Should(HaveLen(1), "of %v", members)
			_, err := machine(leads[0]).Exec(ctx, "systemctl", "kill", "--signal=KILL", "weir-hub")
			Expect(err).NotTo(HaveOccurred())
		}
		typed(ctx, "kubectl scale deployment/web --replicas=8 && kubectl rollout status deployment/web --timeout=3m")
		typed(ctx, "kubectl scale deployment/web --replicas=5 && kubectl rollout status deployment/web --timeout=3m")
		typed(ctx, "kubectl weir check --wait 5m")
	}, SpecTimeout(2*long))

	It("shows logs of pods, and executes in them", func(ctx SpecContext) {
		var pods []string
		Eventually(ctx, func() []string { // those that were one too many have gone
			pods = strings.Fields(typed(ctx, "kubectl get pods -l app=web -o name"))
			return pods
		}, long, poll).Should(HaveLen(5))
		for _, pod := range pods {
			Eventually(ctx, func() (string, error) {
				return command(ctx, "kubectl logs "+pod)
			}, long, poll).Should(ContainSubstring("serving as"))
			Expect(typed(ctx, "kubectl exec "+pod+" -- /app say hello")).To(ContainSubstring("hello"))
		}
	}, SpecTimeout(long))

	showsUse()

	It("works without the cloud, and starts a machine without it", func(ctx SpecContext) {
		served.none()
		heal := cutOff(ctx)
		_, err := docker.Run(ctx, "restart", string(machine(3)))
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() error { // the rules of Services are gone with its network: kube-proxy has to come back
			_, err := onNode(ctx, 3, "curl -sf -m 2 http://127.0.0.1:10248/healthz && /usr/local/bin/weir-app get http://"+
				on.address)
			return err
		}, long, poll).Should(Succeed())
		Expect(source(ctx, 3)).NotTo(Equal("cloud"))
		heal()
		typed(ctx, "kubectl weir check --wait 5m")
		served.forget() // the pod on that machine was away
	}, SpecTimeout(3*long))

	whateverLabelsSay(&served)

	It("lets a node leave and join again, and then has its files as they were", func(ctx SpecContext) {
		typed(ctx, fmt.Sprintf("kubectl label node %s %s-", node(2), contract.NodePoolLabel))
		Eventually(ctx, func() string { return files(ctx, 2) }, long, poll).Should(Equal(on.nodeWas[2]))
		typed(ctx, fmt.Sprintf("kubectl wait --for=condition=Ready node/%s --timeout=3m", node(2)))
		typed(ctx, fmt.Sprintf("kubectl label node %s %s=harbour", node(2), contract.NodePoolLabel))
		typed(ctx, "kubectl weir check --wait 5m")
	}, SpecTimeout(3*long))

	It("is taken off, and leaves nothing", func(ctx SpecContext) {
		out, err := command(ctx, "helm uninstall weir -n weir-system")
		Expect(err).To(HaveOccurred(), "nodes are in pools: %s", out)
		typed(ctx, "kubectl label node --all "+contract.NodePoolLabel+"-")
		for n := range nodes {
			Eventually(ctx, func() string { return files(ctx, n+1) }, long, poll).Should(Equal(on.nodeWas[n+1]), node(n+1))
		}
		typed(ctx, "kubectl delete np --all && kubectl delete pools.weir.dev --all")
		typed(ctx, "helm uninstall weir -n weir-system && kubectl delete namespace weir-system")
		Eventually(ctx, func() []string {
			var more []string
			for _, o := range objects(ctx) {
				if !slices.Contains(on.clusterWas, o) {
					more = append(more, o)
				}
			}
			return more
		}, long, poll).Should(BeEmpty())
		typed(ctx, "kubectl wait --for=condition=Ready node --all --timeout=3m")
		served.none()
	}, SpecTimeout(3*long))

	fromTheFormerRelease(&served)
	fromACheckout(&served)
})

// members waits until pools have so many nodes, all of them well, and each has told of itself.
func members(ctx context.Context, want map[string]int) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		pools := status(ctx).Pools
		g.Expect(pools).To(HaveLen(len(want)))
		for _, p := range pools {
			n := want[p.Name]
			g.Expect([]int{p.Members, p.Heard, p.Joined, p.Told, p.CutOff}).To(Equal([]int{n, n, n, n, 0}), p.Name)
		}
	}, long, poll).Should(Succeed())
}

// source is who feeds the relays of a hub.
func source(ctx context.Context, n int) string {
	out, err := onNode(ctx, n, "curl -sf -m 3 http://127.0.0.1:"+fmt.Sprint(contract.HubHealthPort)+contract.StatusPath)
	var s struct{ Role, Source string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	say("%s: %s, fed by %s (%v)", node(n), s.Role, s.Source, err)
	return s.Source
}

// onNode runs a line on a worker.
func onNode(ctx context.Context, n int, line string) (string, error) {
	return machine(n).Exec(ctx, "sh", "-c", line)
}

// files are all that a worker has of what an installation could change: files with their modes and contents, units, and
// tables of rules. What the node itself changes all the time is left out: containers, the kubelet's certificates, state
// of systemd.
func files(ctx context.Context, n int) string {
	GinkgoHelper()
	const script = `cd /
find etc usr/local opt root run/systemd/system var/lib -xdev \
  \( -path var/lib/containerd -o -path var/lib/kubelet -o -path var/lib/systemd \
     -o -path var/lib/cni -o -path var/lib/dbus \) -prune -o \
  \( -type f -printf '%p %m %u ' -exec sha256sum {} \; \
     -o -type l -printf '%p -> %l\n' -o -type d -printf '%p/ %m\n' \) | sort
cat var/lib/kubelet/config.yaml var/lib/kubelet/kubeadm-flags.env | sha256sum
systemctl list-unit-files --no-legend --type=service | sort
systemctl cat kubelet
nft list tables | sort`
	out, err := onNode(ctx, n, script)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// passing are objects that come and go by themselves, and the definitions, which stay by the chart's own word.
var passing = regexp.MustCompile(
	`^(events|pods|pod/|event|endpointslice|replicaset|controllerrevision|certificatesigningrequest|` +
		`lease.*/apiserver|customresourcedefinition.*/(nodepools.apps.openyurt.io|pools.weir.dev)|apiservice.*)`)

// objects are the names of all that the cluster has.
func objects(ctx context.Context) []string {
	GinkgoHelper()
	out := typed(ctx, `for r in $(kubectl api-resources --verbs=list -o name | grep -v '^events'); do kubectl get $r -A `+
		`--ignore-not-found -o jsonpath='{range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}' | sed `+
		`"s,^[^/]*,$r,"; done`)
	var all []string
	for l := range strings.Lines(out) {
		if l = strings.TrimSpace(l); !passing.MatchString(l) {
			all = append(all, l)
		}
	}
	return all
}
