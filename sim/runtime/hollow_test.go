package runtime

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/cloud"
)

// TestHollowNodes: real kubelets register their nodes and renew their Leases, one straight to the cloud and one through
// its hub; a pod runs and answers; its container is started again when it ends, and it outlives its kubelet. When its
// machine is switched on again, it has another address.
func TestHollowNodes(t *testing.T) {
	t.Parallel()
	if !cloud.Built(t.Context(), cloud.KubeControllerManager, cloud.KubeScheduler, cloud.HollowNode) {
		t.Skip("takes kube-controller-manager, kube-scheduler and hollow-node: weir assets --all builds them")
	}
	site := up(t, Topology{
		Pools: []Pool{
			{
				Name: "plain", Nodes: 1, Mode: Stock, Kubelets: true, Addresses: OtherAddresses,
			}, {Name: "edge", Nodes: 1, Mode: HubOnly, Kubelets: true, Zoneless: true},
		},
		Controllers: true, Timers: cloud.StockTimers().Faster(2.5),
	})
	if err := Start(t.Context(), site, site.Parts()[1:]...); err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		t.Fatal(err)
	}
	for node, zone := range map[string]string{"plain-1": "plain", "edge-1": ""} {
		if n := readyNode(t, admin, node); n.Labels[corev1.LabelTopologyZone] != zone {
			t.Errorf("labels of %s: %v", node, n.Labels)
		}
		wait(t, "the pool's label of "+node, func() bool {
			return readyNode(t, admin, node).Labels[contract.NodePoolLabel]+"-1" == node
		})
		first := renewedAt(t, admin, node)
		wait(t, "a renewal of the Lease of "+node, func() bool { return renewedAt(t, admin, node).After(first) })
		runPod(t, admin, node)
		url := "http://" + net.JoinHostPort(DialAddress(podIP(t, admin, node)), strconv.Itoa(PodPort))
		wait(t, "an answer of the pod on "+node, func() bool { return fetch(t, http.MethodGet, url) == node+"\n" })

		kubelet, err := site.Part(KubeletOf(node))
		if err != nil {
			t.Fatal(err)
		}
		if err := kubelet.Kill(); err != nil {
			t.Fatal(err)
		}
		if got := fetch(t, http.MethodGet, url); got != node+"\n" {
			t.Errorf("without its kubelet the pod answers %q", got)
		}
		if err := kubelet.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		control := site.(*localSite).machines[node].Containers
		if got := fetch(t, http.MethodPost, control+"/exit?pod="+node+"&code=3"); got != "1\n" {
			t.Errorf("ended containers: %q", got)
		}
		wait(t, "a restart of the container on "+node, func() bool { return restarts(t, admin, node) == 1 })
	}
	had := podIP(t, admin, "plain-1")
	for _, id := range []PartID{KubeletOf("plain-1"), ContainersOf("plain-1")} {
		p, err := site.Part(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := Start(t.Context(), site, ContainersOf("plain-1"), KubeletOf("plain-1")); err != nil {
		t.Fatal(err)
	}
	wait(t, "another address than "+had, func() bool { ip := podIP(t, admin, "plain-1"); return ip != "" && ip != had })
}

func readyNode(t *testing.T, admin kubernetes.Interface, name string) (n *corev1.Node) {
	t.Helper()
	wait(t, name+" to be Ready", func() bool {
		var err error
		if n, err = admin.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return false
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return len(n.Spec.Taints) == 0
			}
		}
		return false
	})
	return n
}

func renewedAt(t *testing.T, admin kubernetes.Interface, node string) (at time.Time) {
	t.Helper()
	l, err := admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(t.Context(), node, metav1.GetOptions{})
	if err == nil && l.Spec.RenewTime != nil {
		return l.Spec.RenewTime.Time
	}
	return at
}

// runPod creates a pod for a node, with its name, and waits until it is running.
func runPod(t *testing.T, admin kubernetes.Interface, node string) {
	t.Helper()
	pods := admin.CoreV1().Pods(corev1.NamespaceDefault)
	wait(t, "a pod for "+node, func() bool { // the namespace's service account is created by a controller
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: node}, AutomountServiceAccountToken: ptr.To(false),
				Containers: []corev1.Container{{Name: "app", Image: "app"}},
			},
		}, metav1.CreateOptions{})
		return err == nil
	})
	wait(t, "the pod on "+node+" to run", func() bool { return podIP(t, admin, node) != "" })
}

func podIP(t *testing.T, admin kubernetes.Interface, name string) string {
	t.Helper()
	p, err := admin.CoreV1().Pods(corev1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || p.Status.Phase != corev1.PodRunning {
		return ""
	}
	return p.Status.PodIP
}

func restarts(t *testing.T, admin kubernetes.Interface, name string) int32 {
	t.Helper()
	p, err := admin.CoreV1().Pods(corev1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].State.Running == nil {
		return -1
	}
	return p.Status.ContainerStatuses[0].RestartCount
}

func fetch(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}
