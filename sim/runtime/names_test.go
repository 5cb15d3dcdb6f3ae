package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/link"
)

// Annotations of a static pod's mirror pod (k8s.io/kubernetes/pkg/kubelet/types).
const (
	configMirror = "kubernetes.io/config.mirror" // the hash of the pod in the kubelet's folder
	configSource = "kubernetes.io/config.source"
)

// staticPod is a pod in the kubelet's folder. A headless Service leads to it.
const staticPod = `apiVersion: v1
kind: Pod
metadata: {name: static, namespace: default, labels: {app: static}}
spec:
  hostname: here
  subdomain: static
  containers: [{name: app, image: app, imagePullPolicy: IfNotPresent}]
`

// named are the names of Services, as a CoreDNS in the pool gives them. It asks again and again.
type named struct {
	t      *testing.T
	server string
	mu     sync.Mutex
	said   map[string][]string // what each name led to, in order, without what came again
}

func (n *named) resolve(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r := net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", n.server)
	}}
	all, err := r.LookupNetIP(ctx, "ip4", name+".default.svc."+DNSDomain+".")
	if err != nil {
		return ""
	}
	slices.SortFunc(all, netip.Addr.Compare)
	texts := make([]string, 0, len(all))
	for _, a := range all {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, " ")
}

// ask asks for names until ctx ends.
func (n *named) ask(ctx context.Context, names ...string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, name := range names {
			is := n.resolve(ctx, name)
			n.mu.Lock()
			if had := n.said[name]; is != "" && (len(had) == 0 || had[len(had)-1] != is) {
				n.said[name] = append(had, is)
			}
			n.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// was is what a name led to.
func (n *named) was(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.said[name])
}

// leads waits until a name leads there, and nowhere else.
func (n *named) leads(what, name string, to ...string) {
	n.t.Helper()
	slices.SortFunc(to, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
	wait(n.t, fmt.Sprintf("%s: %s to be %v", what, name, to), func() bool {
		said := n.was(name)
		return len(said) > 0 && said[len(said)-1] == strings.Join(to, " ")
	})
}

// TestNamesFollow: a machine that loses its power while the cloud is away gives its pods other addresses. The real
// CoreDNS of another node answers with them: the names of pods of a StatefulSet, the headless Service of all of them,
// and the name of a static pod, of which the kubelet reports the mirror pod's status. No name leads back when the cloud
// returns.
func TestNamesFollow(t *testing.T) {
	t.Parallel()
	if !cloud.Built(t.Context(), cloud.KubeControllerManager, cloud.KubeScheduler, cloud.HollowNode) {
		t.Skip("takes kube-controller-manager, kube-scheduler and hollow-node: weir assets --all builds them")
	}
	site := up(t, Topology{
		Pools: []Pool{{
			Name: "edge", Nodes: 2, Mode: Weir, Kubelets: true, Names: true, Unread: true, Addresses: OtherAddresses,
		}},
		Controllers: true,
	})
	ids := slices.DeleteFunc(slices.Clone(site.Parts()[1:]), func(id PartID) bool { return id.Kind() == "proxy" })
	if err := Start(t.Context(), site, ids...); err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		t.Fatal(err)
	}
	nodes := []string{"edge-1", "edge-2"}
	for _, n := range nodes {
		readyNode(t, admin, n)
	}
	createStatefulSet(t, admin)
	on := map[string]string{} // by pod
	for _, pod := range []string{"web-0", "web-1"} {
		wait(t, pod+" to run", func() bool { return podIP(t, admin, pod) != "" })
		p, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		on[pod] = p.Spec.NodeName
	}
	lost, other := on["web-0"], on["web-1"]
	static := createStaticPod(t, site, admin, lost)
	machine := func(node string) Machine {
		m, err := site.(Machines).Machine(node)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	dns := &named{t: t, said: map[string][]string{}, server: startDNS(t, admin, other, machine(other).Corefile)}
	before := map[string]string{
		"web-0": podIP(t, admin, "web-0"), "web-1": podIP(t, admin, "web-1"), static: podIP(t, admin, static),
	}
	ctx, end := context.WithCancel(t.Context())
	var asks sync.WaitGroup
	asks.Go(func() { dns.ask(ctx, "web-0.web", "web", "here.static") })
	defer asks.Wait()
	defer end()
	dns.leads("with the cloud", "web-0.web", before["web-0"])
	dns.leads("with the cloud", "web", before["web-0"], before["web-1"])
	dns.leads("with the cloud", "here.static", before[static])
	wait(t, "the hub to keep all", func() bool { return metric(t, site, HubOf(lost), "weir_store_pending_bytes") == 0 })

	site.Link("edge").Cut(link.Both, "")
	wait(t, "the hub to find that it is cut off", func() bool {
		return metric(t, site, HubOf(lost), "weir_hub_cloud_server_healthy") == 0
	})
	restart(t, site, lost, machine(lost))
	now := map[string]string{"web-1": before["web-1"]}
	for _, pod := range []string{"web-0", static} {
		wait(t, pod+" to have another address", func() bool {
			now[pod] = addressOn(t, machine(lost), pod)
			return now[pod] != "" && now[pod] != before[pod]
		})
	}
	dns.leads("without the cloud", "web-0.web", now["web-0"])
	dns.leads("without the cloud", "web", now["web-0"], now["web-1"])
	dns.leads("without the cloud", "here.static", now[static])
	for pod, had := range before { // as the cloud has it: what CoreDNS said is corrected
		if e := endpointOf(t, admin, pod); e == nil || !slices.Equal(e.Addresses, []string{had}) {
			t.Errorf("the cloud has %s at %+v, want %s", pod, e, had)
		}
	}

	site.Link("edge").Heal(link.Both, "")
	for pod, is := range now {
		wait(t, "the cloud to have "+pod+" at "+is, func() bool {
			e := endpointOf(t, admin, pod)
			return e != nil && slices.Equal(e.Addresses, []string{is}) && ptr.Deref(e.Conditions.Ready, false)
		})
	}
	for _, n := range nodes {
		wait(t, "nothing to be corrected at "+n, func() bool { return metric(t, site, HubOf(n), "weir_hub_moved_pods") == 0 })
	}
	dns.leads("with the cloud again", "web", now["web-0"], now["web-1"])
	end()
	asks.Wait()
	for name, want := range map[string][2]string{
		"web-0.web": {before["web-0"], now["web-0"]}, "here.static": {before[static], now[static]},
	} {
		if got := dns.was(name); !slices.Equal(got, want[:]) {
			t.Errorf("%s led to %q one after the other, want %q", name, got, want)
		}
	}
}

// createStatefulSet makes one of two pods on two nodes, and its headless Service.
func createStatefulSet(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	createHeadless(t, admin, "web")
	labels := map[string]string{"app": "web"}
	_, err := admin.AppsV1().StatefulSets(metav1.NamespaceDefault).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), ServiceName: "web", PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: ptr.To(false),
					Containers:                   []corev1.Container{{Name: "app", Image: "app"}},
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
							TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
						}},
					}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func createHeadless(t *testing.T, admin kubernetes.Interface, name string) {
	t.Helper()
	_, err := admin.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(PodPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// createStaticPod puts a pod into the folder of a kubelet, and waits until a slice leads to its mirror pod. The cloud
// gave that another uid than the kubelet's own of the pod, which is the hash of what is in the folder.
func createStaticPod(t *testing.T, site Site, admin kubernetes.Interface, node string) (mirror string) {
	t.Helper()
	createHeadless(t, admin, "static")
	dir, err := site.(*localSite).spawner.Scratch("edge", node, "machine", "kubelet", "static-pods")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "static.yaml"), []byte(staticPod), 0o600); err != nil {
		t.Fatal(err)
	}
	mirror = "static-" + node
	wait(t, mirror+" to run", func() bool { return podIP(t, admin, mirror) != "" })
	p, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), mirror, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Annotations[configSource] != "file" || p.Annotations[configMirror] == "" ||
		p.Annotations[configMirror] == string(p.UID) {
		t.Fatalf("%s is no mirror pod: uid %s, %v", mirror, p.UID, p.Annotations)
	}
	wait(t, "a slice with "+mirror, func() bool {
		e := endpointOf(t, admin, mirror)
		return e != nil && e.TargetRef.UID == p.UID
	})
	return mirror
}

// startDNS runs CoreDNS in a pod, and returns where it answers.
func startDNS(t *testing.T, admin kubernetes.Interface, node, corefile string) (at string) {
	t.Helper()
	_, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns"},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{
				Name: "coredns", Image: DNSImage, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"-conf", corefile},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, "CoreDNS to run", func() bool { return podIP(t, admin, "coredns") != "" })
	return net.JoinHostPort(DialAddress(podIP(t, admin, "coredns")), strconv.Itoa(DNSPort))
}

// endpointOf is where the cloud's slices lead for a pod; nil: nowhere.
func endpointOf(t *testing.T, admin kubernetes.Interface, pod string) *discoveryv1.Endpoint {
	t.Helper()
	all, err := admin.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if apierrors.IsTimeout(err) || all == nil {
		return nil
	}
	for _, s := range all.Items {
		for _, e := range s.Endpoints {
			if e.TargetRef != nil && e.TargetRef.Name == pod {
				return &e
			}
		}
	}
	return nil
}

// restart has a machine lose its power and come back.
func restart(t *testing.T, site Site, node string, m Machine) {
	t.Helper()
	ids := []PartID{HubOf(node), KubeletOf(node), ContainersOf(node)}
	for _, id := range ids {
		p, err := site.Part(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Boots(); err != nil {
		t.Fatal(err)
	}
	if err := Start(t.Context(), site, ids...); err != nil {
		t.Fatal(err)
	}
}

// addressOn is the address that a machine says that a pod has; empty: it does not run.
func addressOn(t *testing.T, m Machine, pod string) string {
	t.Helper()
	var all []struct{ Pod, State, Address string }
	if err := json.Unmarshal([]byte(fetch(t, http.MethodGet, m.Containers+"/containers")), &all); err != nil {
		return ""
	}
	for _, c := range all {
		if c.Pod == pod && c.State == "CONTAINER_RUNNING" {
			return c.Address
		}
	}
	return ""
}

// metric is the sum of a metric of a part; -1: it says none.
func metric(t *testing.T, site Site, id PartID, name string) float64 {
	t.Helper()
	p, err := site.Part(id)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Metrics(t.Context())
	if err != nil {
		return -1
	}
	return m.Sum(name)
}
