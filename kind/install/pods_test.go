package install_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
)

// readersFolder is where readers write how their calls went, on their machine.
const readersFolder = "/tmp/readers"

// rights are what readers may.
const rights = `
apiVersion: v1
kind: Namespace
metadata: {name: readers}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: readers}
rules:
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: default, namespace: readers}]
`

// reader is a pod on a node that reads the API twice a second, by a stock client.
const reader = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: readers}
spec:
  selector: {matchLabels: {app: %[1]s}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeName: %[2]s
      hostNetwork: %[3]v
      containers:
      - {name: reader, image: ` + appImage +
	`, imagePullPolicy: Never, args: [read, 500ms, /log, $(NAME)],
         env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}],
         volumeMounts: [{name: log, mountPath: /log}]}
      volumes: [{name: log, hostPath: {path: ` + readersFolder + `, type: DirectoryOrCreate}}]
`

// startReaders starts some, each on its node.
func startReaders(ctx context.Context, file string, all map[string]int) {
	GinkgoHelper()
	text := rights
	for name, n := range all {
		text += fmt.Sprintf(reader, name, node(n), strings.HasPrefix(name, "host"))
	}
	Expect(os.WriteFile(filepath.Join(on.dir, file), []byte(text), 0o644)).To(Succeed())
	typed(ctx, "kubectl apply -f "+file)
	for name := range all {
		typed(ctx, "kubectl -n readers rollout status deployment/"+name+" --timeout=3m")
	}
}

// heard is what a reader has seen on a node since a time: how many calls of which address went well, and all that
// failed.
func heard(ctx context.Context, n int, name string, since time.Time) (good map[string]int, failed []string) {
	GinkgoHelper()
	out, err := onNode(ctx, n, "cat "+readersFolder+"/"+name+"-*.log")
	Expect(err).NotTo(HaveOccurred())
	good = map[string]int{}
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) < 3 {
			continue // it is being written
		}
		at, err := time.Parse(time.RFC3339, fields[0])
		Expect(err).NotTo(HaveOccurred())
		switch {
		case at.Before(since.Truncate(time.Second)):
		case fields[2] == "ok":
			good[fields[1]]++
		default:
			failed = append(failed, line)
		}
	}
	return good, failed
}

// led is how many calls a reader made well at an address since a time.
func led(ctx context.Context, n int, name, at string, since time.Time) func() int {
	return func() int {
		good, _ := heard(ctx, n, name, since)
		return good[at]
	}
}

// killed ends the processes of a command on a node, and returns when.
func killed(ctx context.Context, n int, command string) time.Time {
	GinkgoHelper()
	at := time.Now().UTC()
	_, err := onNode(ctx, n, "pkill -9 -f '"+command+"'")
	Expect(err).NotTo(HaveOccurred())
	return at
}

// podSpecs are those of pods that reach their hub. They leave the cluster as it was.
func podSpecs() {
	const hub, cloud = contract.PodsAddress + ":10268", "10.96.0.1:443"
	var began time.Time

	BeforeAll(func(ctx SpecContext) {
		began = time.Now()
		startReaders(ctx, "before.yaml", map[string]int{"before-1": 1, "before-5": 5})
	}, NodeTimeout(2*long))

	It("leads pods to their hub when they trust it, and leaves those alone that were there before", func(ctx SpecContext) {
		for n := 1; n <= nodes; n++ {
			Eventually(ctx, func() (string, error) {
				return onNode(ctx, n, "curl -sf -m 3 http://127.0.0.1:"+fmt.Sprint(contract.HubHealthPort)+contract.StatusPath)
			}, long, poll).Should(ContainSubstring(`"pods":{"address":"`+hub+`","led":true}`), node(n))
		}
		since := time.Now()
		startReaders(ctx, "after.yaml", map[string]int{"after-2": 2, "after-5": 5, "host-2": 2})
		served := bytesOfRelays(ctx, 2)
		for name, n := range map[string]int{"after-2": 2, "after-5": 5, "host-2": 2} {
			Eventually(ctx, led(ctx, n, name, hub, since), long, poll).Should(BeNumerically(">", 10), name)
			good, failed := heard(ctx, n, name, began)
			Expect(good).To(HaveLen(1), name)
			Expect(failed).To(BeEmpty(), name)
		}
		Expect(bytesOfRelays(ctx, 2)).To(BeNumerically(">", served), "a list of a pod is answered by the hub's own relay")
		Expect(typed(ctx, "kubectl -n readers exec deployment/after-2 -- /app write readers by-a-pod")).To(
			ContainSubstring("written at " + hub))
		for name, n := range map[string]int{"before-1": 1, "before-5": 5} {
			good, failed := heard(ctx, n, name, began)
			Expect(failed).To(BeEmpty(), name)
			Expect(good).To(And(HaveLen(1), HaveKey(cloud)), name)
		}
	}, SpecTimeout(2*long))

	It("names those that call the cloud past their hub, and no others", func(ctx SpecContext) {
		// Those that are there now are the two that stay in the end: the cluster is left as it was.
		typed(ctx, "kubectl -n kube-system annotate pods -l k8s-app=kube-dns controller.kubernetes.io/pod-deletion-cost=100")
		typed(ctx, "kubectl -n kube-system scale deployment/coredns --replicas=6 && kubectl -n kube-system rollout status "+
			"deployment/coredns --timeout=3m")
		for n, bypasses := range map[int]bool{1: true, 2: false, 5: true} {
			out, err := onNode(ctx, n, "/root/weir check --here")
			say("%s:\n%s", node(n), out)
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Count(out, "app (pid ")).To(Equal(map[bool]int{true: 1, false: 0}[bypasses]), node(n))
			Expect(out).NotTo(ContainSubstring("coredns (pid "), node(n))
		}
	}, SpecTimeout(2*long))

	It("lets pods read without the cloud, also those that start anew then", func(ctx SpecContext) {
		dns, address := 0, ""
		for line := range strings.Lines(
			typed(ctx, `kubectl -n kube-system get pods -l k8s-app=kube-dns -o jsonpath='{range .items[*]}{.spec.nodeName} `+
				`{.status.podIP}{"\n"}{end}'`)) {
			if _, err := fmt.Sscanf(line, "edge-%d %s", &dns, &address); err == nil {
				break
			}
		}
		Expect(dns).NotTo(BeZero(), "CoreDNS is on no edge node")
		heal := cutOff(ctx)
		away := time.Now()
		Eventually(ctx, led(ctx, 2, "after-2", hub, away.Add(10*time.Second)), long, poll).Should(BeNumerically(">", 5))
		anew := killed(ctx, 2, "^/app read .* after-2-")
		Eventually(ctx, led(ctx, 2, "after-2", hub, anew.Add(time.Second)), long, poll).Should(BeNumerically(">", 5))
		_, failed := heard(ctx, 2, "after-2", began)
		Expect(failed).To(BeEmpty())
		killed(ctx, dns, "^/coredns ")
		Eventually(ctx, func() (string, error) { return onNode(ctx, dns, "curl -sf -m 2 http://"+address+":8181/ready") },
			long, poll).Should(ContainSubstring("OK"))
		heal()
		typed(ctx, "kubectl weir check --wait 5m")
		typed(ctx, "kubectl -n kube-system scale deployment/coredns --replicas=2 && kubectl -n kube-system rollout status "+
			"deployment/coredns --timeout=3m")
		typed(ctx, "kubectl -n kube-system annotate pods -l k8s-app=kube-dns controller.kubernetes.io/pod-deletion-cost-")
	}, SpecTimeout(3*long))

	It("takes the API from no pod when their node leaves", func(ctx SpecContext) {
		var before, web string
		Expect(onNode(ctx, 5, "cat /var/lib/weir-hub/"+nodelocal.CallersFile)).To(ContainSubstring(`"name":"after-5-`))
		before = typed(ctx,
			"kubectl -n readers get pod -l app=before-5 -o "+
				"jsonpath={.items[0].metadata.uid}/{.items[0].status.containerStatuses[0].restartCount}")
		web = typed(ctx, "kubectl get pods -l app=web -o jsonpath='{range .items[*]}{.metadata.uid} {end}'")
		left := time.Now()
		typed(ctx, fmt.Sprintf("kubectl label node %s %s-", node(5), contract.NodePoolLabel))
		Eventually(ctx, func() string {
			out, _ := onNode(ctx, 5, "/root/weir node status; ip -o address show to "+contract.PodsAddress)
			return strings.TrimSpace(out)
		}, long, poll).Should(Equal("this node has not joined a pool by weir node join"))
		typed(ctx, "kubectl -n readers rollout status deployment/after-5 --timeout=3m")
		Eventually(ctx, led(ctx, 5, "after-5", cloud, left), long, poll).Should(BeNumerically(">", 10))
		for _, name := range []string{"before-5", "after-5"} {
			_, failed := heard(ctx, 5, name, left)
			Expect(failed).To(BeEmpty(), name)
		}
		Expect(
			typed(ctx, "kubectl -n readers get pod -l app=before-5 -o "+
				"jsonpath={.items[0].metadata.uid}/{.items[0].status.containerStatuses[0].restartCount}")).To(Equal(before))
		Expect(typed(ctx, "kubectl get pods -l app=web -o jsonpath='{range .items[*]}{.metadata.uid} {end}'")).To(Equal(web),
			"a pod that does not call the API was started anew")
		typed(ctx, fmt.Sprintf("kubectl label node %s %s=barge", node(5), contract.NodePoolLabel))
		typed(ctx, "kubectl weir check --wait 5m")
		good, failed := heard(ctx, 5, "after-5", left)
		Expect(failed).To(BeEmpty())
		say("calls since the leave: %v", good)
		typed(ctx, "kubectl delete namespace readers --wait")
		for n := range nodes {
			_, err := onNode(ctx, n+1, "rm -rf "+readersFolder)
			Expect(err).NotTo(HaveOccurred())
		}
	}, SpecTimeout(4*long))
}

// cutOff cuts workers off from the cloud until heal.
func cutOff(ctx context.Context) (heal func()) {
	GinkgoHelper()
	own, err := on.run.Control().Addresses(ctx)
	Expect(err).NotTo(HaveOccurred())
	cloud := func(line string) {
		GinkgoHelper()
		_, err := on.run.Control().Exec(ctx, "sh", "-c", line)
		Expect(err).NotTo(HaveOccurred())
	}
	cloud(fmt.Sprintf("nft add table ip away; nft 'add chain ip away in { type filter hook input priority -5; }'; "+
		"nft add rule ip away in ip saddr != %s ip saddr != %s ip saddr %s/16 tcp dport 6443 reject with tcp reset", own[0],
		on.run.Network.Gateway, on.run.Network.Gateway))
	return func() { cloud("nft delete table ip away") }
}

// bytesOfRelays is what a hub has served from its relays.
func bytesOfRelays(ctx context.Context, n int) (bytes float64) {
	GinkgoHelper()
	out, err := onNode(ctx, n, "curl -sf -m 3 http://127.0.0.1:"+fmt.Sprint(contract.HubHealthPort)+"/metrics")
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(out) {
		if value, ok := strings.CutPrefix(line, `weir_hub_served_bytes_total{route="relay"} `); ok {
			_, err := fmt.Sscan(value, &bytes)
			Expect(err).NotTo(HaveOccurred())
		}
	}
	return bytes
}
