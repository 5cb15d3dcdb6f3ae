package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	movedLabel = "moved"
	movedWeb   = "moved"
	// follow is how soon Services have to lead to pods that moved. It is five seconds; here it is what scenarios call a
	// wrong route, since clusters share their machine with other work. What was seen is reported.
	follow = 10 * time.Second
	// hold is how long nothing may change again.
	hold = 20 * time.Second
)

var _ = DescribeTable("pods of a machine that starts without the cloud, at other addresses",
	Label(movedLabel), movedPods,
	Entry("lead callers by kube-proxy of nftables", SpecTimeout(5*long), "nftables"),
	Entry("lead callers by kube-proxy of iptables", SpecTimeout(5*long), "iptables"),
)

func movedPods(ctx SpecContext, mode string) {
	off, others := nodesOf(weir)[0], nodesOf(weir)[1:]
	proxyMode(ctx, mode)
	// The CNI gives the next address that it has not given yet, and begins with the first when a machine starts. So pods
	// that are not the first ones of their machine have others then.
	const former, pods = 12, 8
	deployWeb(ctx, "former", former, off)
	address := deployWeb(ctx, movedWeb, pods, off)
	dnsOn(ctx, off)
	Expect(scale(ctx, "former", 0)).To(Succeed())
	dns, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())

	var before, now map[string]string
	Eventually(ctx, func(g Gomega) {
		steady(ctx, g)
		g.Expect(podsOf(ctx, "former")).To(BeEmpty())
		g.Expect(dnsPods(ctx)).To(HaveLen(int(*dns.Spec.Replicas)))
		before, err = placed(ctx, off)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(before).To(HaveLen(pods+int(*dns.Spec.Replicas)), "pods on %s", off)
	}).WithTimeout(long).WithPolling(poll).Should(Succeed())
	names, uids := []string{}, map[types.UID]string{}
	for _, p := range append(podsOf(ctx, movedWeb), dnsPods(ctx)...) {
		Expect(before).To(HaveKeyWithValue(p.Name, p.Status.PodIP))
		uids[p.UID] = p.Name
		if p.Namespace == namespace {
			names = append(names, p.Name)
		}
	}
	var shown []*sight
	var calls []*visitor
	var proxies []*rules
	for _, node := range others {
		shown = append(shown, look(ctx, node))
		proxies = append(proxies, readRules(ctx, node))
		for _, asks := range []string{"always", "once"} {
			calls = append(calls, startVisitor(ctx, node, asks))
		}
	}
	reached := func(since time.Time) {
		GinkgoHelper()
		for _, c := range calls {
			Eventually(ctx, func() ([]string, error) { return c.met(ctx, since) }).WithTimeout(long).WithPolling(poll).Should(
				ConsistOf(names), c.name)
		}
	}
	reached(time.Now())

	l := pools.Link(weir)
	l.Cut(link.Both, "")
	DeferCleanup(l.HealAll)
	hub := part(runtime.HubOf(off))
	Expect(hub.Kill()).To(Succeed()) // the machine
	Expect(hub.Start(ctx)).To(Succeed())
	var running time.Time
	Eventually(ctx, func(g Gomega) {
		running = time.Now()
		now, err = placed(ctx, off)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(slices.Sorted(maps.Keys(now))).To(Equal(slices.Sorted(maps.Keys(before))))
	}).WithTimeout(long).WithPolling(poll).Should(Succeed())
	var lost []string // addresses that nobody has any more
	moved := 0
	for name, address := range before {
		if now[name] != address {
			moved++
		}
		if !slices.Contains(slices.Collect(maps.Values(now)), address) {
			lost = append(lost, address)
		}
	}
	AddReportEntry(mode+": pods at other addresses", fmt.Sprintf("%d of %d, CoreDNS among them", moved, len(before)))
	Expect(2*moved).To(BeNumerically(">=", len(before)), "the CNI gave the addresses of before: %v", now)

	By("leading callers without the cloud")
	ledBy := running.Add(follow)
	for i, node := range others {
		Eventually(ctx, func(g Gomega) {
			proxies[i].right(g, now, lost)
			shown[i].are(g, uids, now)
		}).WithTimeout(time.Until(ledBy)).WithPolling(poll).Should(Succeed(), node)
	}
	AddReportEntry(mode+": s from containers running to rules of kube-proxy on all other nodes, at most",
		fmt.Sprintf("%.1f", time.Since(running).Seconds()))
	reached(ledBy)
	stays := func(g Gomega) {
		for _, p := range proxies {
			p.right(g, now, lost)
		}
	}
	Consistently(ctx, stays).WithTimeout(hold).WithPolling(time.Second).Should(Succeed())
	healed := time.Now()
	l.HealAll()

	By("going on with the cloud")
	Eventually(ctx, func(g Gomega) {
		stays(g)
		steady(ctx, g)
		for _, p := range append(podsOf(ctx, movedWeb), dnsPods(ctx)...) {
			g.Expect(uids).To(HaveKey(p.UID), "%s is new: pods of the pool were moved", p.Name)
			g.Expect(p.Status.PodIP).To(Equal(now[p.Name]), p.Name)
			g.Expect(ready(p)).To(BeTrue(), p.Name)
		}
		all, err := client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=" + movedWeb,
		})
		g.Expect(err).NotTo(HaveOccurred())
		for _, s := range all.Items {
			for _, e := range s.Endpoints {
				g.Expect(e.Addresses).To(Equal([]string{now[e.TargetRef.Name]}), e.TargetRef.Name)
				g.Expect(*e.Conditions.Ready).To(BeTrue(), e.TargetRef.Name)
			}
		}
	}).WithTimeout(long).WithPolling(poll).Should(Succeed())
	Consistently(ctx, stays).WithTimeout(hold).WithPolling(time.Second).Should(Succeed())
	reached(healed)
	for i, node := range others {
		shown[i].onceEach(uids, before, now, node)
		_, err := reach(ctx, node, address)
		Expect(err).NotTo(HaveOccurred(), node)
	}
	late := map[string][]string{}
	for _, c := range calls { // all are told, also where one fails
		made, err := c.visits(ctx)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry(mode+": "+c.name, told(made, running))
		if fails := failures(made, ledBy); len(fails) > 0 {
			late[c.name] = append(fails[:min(len(fails), 3)], "...", fails[len(fails)-1], fmt.Sprintf("%d in all", len(fails)))
		}
	}
	Expect(late).To(BeEmpty(), "calls that began after %s, the link was back at %s", stamp(ledBy), stamp(healed))
}

func stamp(t time.Time) string { return t.UTC().Format(time.StampMilli) }

// dnsPods are those of CoreDNS.
func dnsPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// dnsOn has CoreDNS on one node, and its kubelet ask each second whether it is ready, until the spec ends.
func dnsOn(ctx context.Context, node string) {
	GinkgoHelper()
	put := func(ctx context.Context, node, period string) {
		GinkgoHelper()
		_, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Patch(ctx, "coredns", types.StrategicMergePatchType,
			fmt.Appendf(nil, `{"spec":{"template":{"spec":{"nodeSelector":{%q:%s},"containers":[{"name":"coredns",
			"readinessProbe":{"periodSeconds":%s}}]}}}}`, corev1.LabelHostname, node, period), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		rolledOutIn(ctx, metav1.NamespaceSystem, "coredns")
	}
	put(ctx, fmt.Sprintf("%q", node), "1")
	DeferCleanup(func(ctx SpecContext) { put(ctx, "null", "null") }, NodeTimeout(3*long))
}

var modeLine = regexp.MustCompile(`(?m)^mode: *"?([a-z]*)"?$`)

// proxyMode has kube-proxy of all nodes in a mode until the spec ends.
func proxyMode(ctx context.Context, mode string) {
	GinkgoHelper()
	if was := putProxyMode(ctx, mode); was != mode {
		DeferCleanup(func(ctx SpecContext) { putProxyMode(ctx, was) }, NodeTimeout(long))
	}
}

// putProxyMode returns the mode of before.
func putProxyMode(ctx context.Context, mode string) (was string) {
	GinkgoHelper()
	const name, key = "kube-proxy", "config.conf"
	c, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	is := modeLine.FindStringSubmatch(c.Data[key])
	Expect(is).NotTo(BeNil(), c.Data[key])
	if is[1] != mode {
		c.Data[key] = modeLine.ReplaceAllString(c.Data[key], "mode: "+mode)
		_, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Update(ctx, c, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = client.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, name, types.StrategicMergePatchType,
			fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"weir.test/mode":%q}}}}}`, mode),
			metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(ctx, func(g Gomega) {
		for _, node := range allNodes() {
			out, err := pools.Exec(ctx, node, "curl", "-sf", "-m", "2", "http://127.0.0.1:10249/proxyMode")
			g.Expect(err).NotTo(HaveOccurred(), node)
			g.Expect(out).To(Equal(mode), node)
		}
	}).WithTimeout(long).WithPolling(poll).Should(Succeed())
	return is[1]
}

// aims are the addresses in rules of kube-proxy: of nftables `numgen random mod 2 map { 0 : 10.244.1.5 . 80, …`, or
// `dnat to 10.244.1.5:80` for a single one, and of iptables also `ip saddr 10.244.1.5`.
const aims = `(dnat to|saddr|:) [0-9]+[.][0-9]+[.][0-9]+[.][0-9]+`

// rules are the addresses in rules of kube-proxy of a node, as a program there writes them once a second. To run
// another program each time would take half of what two cores can do.
type rules struct {
	node string
	mu   sync.Mutex
	read time.Time
	all  []string
}

// readRules starts to read them, until the spec ends.
func readRules(ctx context.Context, node string) *rules {
	r := &rules{node: node}
	out, in := io.Pipe()
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	var ends sync.WaitGroup
	ends.Go(func() {
		in.CloseWithError(pools.Follow(open, node, in, "bash", "-c",
			"while nft list ruleset | grep -oE '"+aims+"'; echo all; do read -t 1; [ $? -gt 128 ] || exit; done"))
	})
	ends.Go(func() {
		var all []string
		for s := bufio.NewScanner(out); s.Scan(); {
			if s.Text() != "all" {
				all = append(all, s.Text()[strings.LastIndexByte(s.Text(), ' ')+1:])
				continue
			}
			r.mu.Lock()
			r.read, r.all, all = time.Now(), all, nil
			r.mu.Unlock()
		}
	})
	DeferCleanup(func() {
		end()
		ends.Wait()
	})
	return r
}

// right says that there are rules for addresses of pods, and none for those that were lost.
func (r *rules) right(g Gomega, now map[string]string, lost []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Expect(time.Since(r.read)).To(BeNumerically("<", hold/2), "since the rules of %s were read", r.node)
	g.Expect(r.all).To(ContainElements(slices.Collect(maps.Values(now))), "rules of "+r.node)
	for _, a := range lost {
		g.Expect(r.all).NotTo(ContainElement(a), "rules of "+r.node)
	}
}

// sight is what a client of a hub was shown of pods in EndpointSlices: their addresses, one after the other.
type sight struct {
	mu    sync.Mutex
	shown map[types.UID][]string
}

// look starts an informer at the hub of a node, which is open until the spec ends.
func look(ctx context.Context, node string) *sight {
	GinkgoHelper()
	e, err := pools.Endpoint(node, runtime.ClassNode)
	Expect(err).NotTo(HaveOccurred())
	token, err := pools.Token(ctx, "kube-proxy")
	Expect(err).NotTo(HaveOccurred())
	at, err := kubernetes.NewForConfig(&rest.Config{Host: e.URL, BearerToken: token, TLSClientConfig: e.Trust()})
	Expect(err).NotTo(HaveOccurred())
	s := &sight{shown: map[types.UID][]string{}}
	factory := informers.NewSharedInformerFactory(at, 0)
	informer := factory.Discovery().V1().EndpointSlices().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: s.note, UpdateFunc: func(_, is any) { s.note(is) },
	})
	Expect(err).NotTo(HaveOccurred())
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(func() {
		end()
		factory.Shutdown()
	})
	factory.Start(open.Done())
	Expect(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)).To(BeTrue(), node)
	return s
}

func (s *sight) note(is any) {
	slice, ok := is.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slice.Endpoints {
		if e.TargetRef == nil || len(e.Addresses) == 0 {
			continue
		}
		had := s.shown[e.TargetRef.UID]
		if len(had) == 0 || had[len(had)-1] != e.Addresses[0] {
			s.shown[e.TargetRef.UID] = append(had, e.Addresses[0])
		}
	}
}

// are says that the last addresses are those of now.
func (s *sight) are(g Gomega, uids map[types.UID]string, now map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, name := range uids {
		g.Expect(s.shown[uid]).NotTo(BeEmpty(), name)
		g.Expect(s.shown[uid][len(s.shown[uid])-1]).To(Equal(now[name]), name)
	}
}

// onceEach says that no address came again after the next one.
func (s *sight) onceEach(uids map[types.UID]string, before, now map[string]string, node string) {
	GinkgoHelper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, name := range uids {
		Expect(s.shown[uid]).To(Equal(slices.Compact([]string{before[name], now[name]})), "%s at the hub of %s", name, node)
	}
}

// visitor is a pod that calls the Service by its name ten times a second.
type visitor struct{ node, name string }

// visiting is a call of a visitor.
type visiting struct {
	began  time.Time
	took   time.Duration
	pod    string // that answered
	failed string // why nobody did
}

// startVisitor starts one on a node. It asks for the address of the name at each call, or once at its start.
func startVisitor(ctx context.Context, node, asks string) *visitor {
	GinkgoHelper()
	v := &visitor{node, "visitor-" + asks + "-" + node}
	_, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: v.name},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](1),
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "visitor", Image: runtime.AppImage, ImagePullPolicy: corev1.PullNever,
				Args: []string{"visit", "100ms", "2s", asks, "http://" + movedWeb},
			}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, v.name, metav1.DeleteOptions{})).To(Succeed())
	}, NodeTimeout(long))
	return v
}

// visits reads its calls from the log that its kubelet keeps, in the order in which they began.
func (v *visitor) visits(ctx context.Context) ([]visiting, error) {
	out, err := pools.Exec(ctx, v.node, "sh", "-c", "cat /var/log/pods/"+namespace+"_"+v.name+"_*/visitor/0.log")
	if err != nil {
		return nil, err
	}
	var all []visiting
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 6) // when, stream, F, and what it wrote
		if len(f) < 6 {
			continue // it is being written
		}
		began, err := time.Parse(time.RFC3339Nano, f[3])
		if err != nil {
			return nil, fmt.Errorf("%s wrote %q: %w", v.name, line, err)
		}
		took, err := time.ParseDuration(f[4])
		if err != nil {
			return nil, fmt.Errorf("%s wrote %q: %w", v.name, line, err)
		}
		call := visiting{began: began, took: took, pod: f[5]}
		if why, failed := strings.CutPrefix(f[5], "failed: "); failed {
			call.pod, call.failed = "", why
		}
		all = append(all, call)
	}
	slices.SortFunc(all, func(a, b visiting) int { return a.began.Compare(b.began) })
	return all, nil
}

// met are the pods that answered calls that began since a time.
func (v *visitor) met(ctx context.Context, since time.Time) ([]string, error) {
	made, err := v.visits(ctx)
	pods := map[string]bool{}
	for _, c := range made {
		if c.failed == "" && c.began.After(since) {
			pods[c.pod] = true
		}
	}
	return slices.Collect(maps.Keys(pods)), err
}

// failures are the calls that failed and began since a time.
func failures(made []visiting, since time.Time) (all []string) {
	for _, c := range made {
		if c.failed != "" && c.began.After(since) {
			all = append(all, stamp(c.began)+": "+c.failed)
		}
	}
	return all
}

// told says how calls went, and how long after all containers ran the first was answered behind which none failed.
func told(made []visiting, running time.Time) string {
	var good *visiting
	failed := 0
	for i, c := range made {
		switch {
		case c.failed != "":
			failed, good = failed+1, nil
		case good == nil:
			good = &made[i]
		}
	}
	if good == nil {
		return fmt.Sprintf("%d of %d calls failed, and the last one", failed, len(made))
	}
	return fmt.Sprintf("%d of %d calls failed; %.1f s from containers running to answered calls", failed, len(made),
		max(0, good.began.Add(good.took).Sub(running).Seconds()))
}
