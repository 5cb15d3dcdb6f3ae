package installtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/install"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/loopback"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

// Where the kubelet of a machine keeps its certificate, and the port at which its pods answer.
const (
	kubeletPKI  = "/var/lib/kubelet/pki"
	currentPair = kubeletPKI + "/kubelet-client-current.pem"
	led         = "/etc/weir/kubelet.conf" // of a node that has joined
	podPort     = 18080
)

// kubeletConfig is that of a kubelet which manages no control groups and listens nowhere. Else it is as kubeadm has it,
// with a Lease that is renewed each second.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
enableServer: false
healthzPort: 0
rotateCertificates: true
nodeLeaseDurationSeconds: 4
nodeStatusUpdateFrequency: 1s
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
localStorageCapacityIsolation: false
`

// realKubelet is the kubelet of Kubernetes, as its command has it, over a container runtime whose containers are
// listeners.
type realKubelet struct {
	s                *systemd
	spawner          *proc.Spawner
	binaries         cloud.Binaries
	socket           string // of the runtime
	first, control   string // address of the first pod, and where the runtime is steered
	log              string
	kubeconfig       string        // a copy of the one that its unit names
	containers, runs *proc.Process // nil: it does not run
}

func newKubelet(t *testing.T, s *systemd, binaries cloud.Binaries) *realKubelet {
	t.Helper()
	block, err := loopback.Reserve(t.Context())
	check(t, err)
	t.Cleanup(block.Release)
	dir := t.TempDir()
	k := &realKubelet{
		s: s, spawner: proctest.Spawner(t), binaries: binaries, socket: filepath.Join(s.path, "cri"),
		log: filepath.Join(dir, "kubelet.log"), kubeconfig: filepath.Join(dir, "kubeconfig"),
	}
	k.first, err = block.Addr(2)
	check(t, err)
	steer, err := block.Addr(1)
	check(t, err)
	k.control = net.JoinHostPort(steer, "9001")
	config := fmt.Appendf(nil, "%scontainerRuntimeEndpoint: unix://%s\npodLogsDir: %s\nvolumePluginDir: %s\n",
		kubeletConfig, k.socket, s.at("/var/log/pods"), s.at("/var/lib/kubelet/volumeplugins"))
	write(t, s.at("/var/lib/kubelet/config.yaml"), config)
	t.Cleanup(func() {
		k.stop(k.runs)
		for err == nil { // it mounts its folder there, for mounts of its pods
			err = syscall.Unmount(s.at("/var/lib/kubelet"), syscall.MNT_DETACH)
		}
		if t.Failed() {
			if text, err := os.ReadFile(k.log); err == nil {
				t.Logf("the kubelet:\n%s", text[max(0, len(text)-8000):])
			}
		}
	})
	return k
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, text, 0o600))
}

// start restarts it, as its unit says; its files are below the machine's folder.
func (k *realKubelet) start(args []string) error {
	k.stop(k.runs)
	for n, arg := range args {
		flag, path, _ := strings.Cut(arg, "=")
		if flag != "--kubeconfig" {
			args[n] = flag + "=" + k.s.at(path)
			continue
		}
		conf, err := k.s.kubeconfig(path)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(*conf, k.kubeconfig); err != nil {
			return err
		}
		args[n] = flag + "=" + k.kubeconfig
	}
	root, certs := k.s.at("/var/lib/kubelet"), k.s.at(kubeletPKI)
	args = append(args, "--hostname-override="+nodeName, "--root-dir="+root, "--cert-dir="+certs)
	var err error
	k.runs, err = k.spawner.Start(proc.Spec{Name: "kubelet", Path: k.binaries[cloud.Kubelet], Args: args, LogFile: k.log})
	return err
}

// power restarts the machine's containers: there are none before the kubelet has made some.
func (k *realKubelet) power() error {
	k.stop(k.containers)
	var err error
	args := []string{
		"runtime", "--endpoint=unix://" + k.socket, "--control-address=" + k.control, "--first-address=" + k.first,
		"--pods=8", "--port=" + strconv.Itoa(podPort),
	}
	k.containers, err = k.spawner.Start(proc.Spec{
		Name: "containers", Path: k.binaries[cloud.HollowNode], LogFile: k.log, Args: args,
	})
	return err
}

func (k *realKubelet) stop(p *proc.Process) {
	if p != nil {
		p.Kill()
		<-p.Done()
	}
}

// TestKubelet: a node with the kubelet of Kubernetes itself joins. The cloud goes, the kubelet's certificate ends,
// nobody has left it a bootstrap token, and the machine loses its power. The kubelet starts by the certificate that its
// hub takes, is heard there, and its pod answers again. Led to the same hub without that certificate it ends for want
// of bootstrap. When the cloud is back and the node has another certificate there, heartbeats go on; the node leaves,
// and the kubelet has its own certificate.
func TestKubelet(t *testing.T) {
	if !cloud.Built(t.Context(), cloud.Kubelet, cloud.HollowNode) {
		t.Skip("takes kubelet and hollow-node: weir assets --all builds them")
	}
	if os.Getuid() != 0 {
		t.Skip("a kubelet runs as root")
	}
	c, binaries := cloudtest.Start(t, cloud.Kubelet, cloud.HollowNode)
	progress := func(m string) { t.Log(m) }
	built, err := parts.Find(t.Context(), proctest.Spawner(t), nil, progress, parts.HubCommand, "kubectl-weir")
	check(t, err)
	root := machine(t, c)
	s := newSystemd(t, root)
	s.kubelet = newKubelet(t, s, binaries)
	write(t, s.at("/usr/lib/systemd/system/kubelet.service"), []byte("[Service]\nExecStart=/usr/bin/kubelet"+
		" --config=/var/lib/kubelet/config.yaml --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf"+
		" --kubeconfig=/etc/kubernetes/kubelet.conf\n"))
	s.certificate(c, 0)
	check(t, s.kubelet.power())
	s.restart("kubelet.service")
	heartbeats(t, c, "of a kubelet that calls the cloud")
	pod := tenant(t, c)
	s.kubelet.answers(t, pod)

	flags := ports(t)
	join := append([]string{"node", "join", "--pool=harbour", "--hub-binary=" + built[parts.HubCommand]}, flags...)
	s.weirs(built["kubectl-weir"], join...)
	heartbeats(t, c, "through the hub")
	port, err := strconv.Atoi(strings.TrimPrefix(flags[1], "--health-port="))
	check(t, err)
	testkit.Until(t, time.Minute, "what the kubelet reads of the whole cluster to be on the disk", func() bool {
		_, err := os.Stat(s.at("/var/lib/weir-hub/relays/services.v1.snapshot"))
		return err == nil
	})

	c.APIServer().Kill()
	s.kubelet.stop(s.kubelet.runs)
	s.certificate(c, -time.Minute)
	s.restart("weir-hub.service")
	check(t, s.kubelet.power())
	s.endsWithout()
	before := time.Now()
	s.restart("kubelet.service")
	testkit.Until(t, time.Minute, "a heartbeat at the hub", func() bool {
		h, err := install.StatusOfHub(t.Context(), port)
		return err == nil && h.Heartbeat.Last.After(before)
	})
	s.kubelet.answers(t, pod)
	s.shows(true)

	check(t, c.StartAPIServer(t.Context()))
	s.certificate(c, 0)
	heartbeats(t, c, "by another certificate")
	s.weirs(built["kubectl-weir"], "node", "leave")
	heartbeats(t, c, "after the node has left")
	s.shows(false)
}

// certificate gives the node one of the cloud, where a kubelet keeps what it renews.
func (s *systemd) certificate(c *cloud.Cloud, life time.Duration) {
	s.t.Helper()
	pair, err := c.KubeletCertificate(nodeName, life)
	check(s.t, err)
	dated := filepath.Join(kubeletPKI, "kubelet-client-"+time.Now().Format("2006-01-02-15-04-05")+".pem")
	write(s.t, s.at(dated), append(append([]byte(nil), pair.CertPEM...), pair.KeyPEM...))
	check(s.t, os.RemoveAll(s.at(currentPair)))
	check(s.t, os.Symlink(s.at(dated), s.at(currentPair)))
}

// shows: the certificate that the kubelet has is the one of its hub, or the cloud's.
func (s *systemd) shows(local bool) {
	s.t.Helper()
	text, err := os.ReadFile(s.at(currentPair))
	check(s.t, err)
	pair, err := tls.X509KeyPair(text, text)
	check(s.t, err)
	if credential.IsLocal(pair.Leaf) != local {
		s.t.Errorf("the kubelet shows a certificate of %s", pair.Leaf.Issuer)
	}
}

// endsWithout: the kubelet is led to the same hub by the same kubeconfig, but for the certificate that only this hub
// takes.
func (s *systemd) endsWithout() {
	s.t.Helper()
	const without = "/etc/kubernetes/without.conf"
	conf, err := clientcmd.LoadFromFile(s.at(led))
	check(s.t, err)
	for name := range conf.AuthInfos {
		conf.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: currentPair, ClientKey: currentPair}
	}
	check(s.t, clientcmd.WriteToFile(*conf, s.at(without)))
	command := strings.Replace(s.command(), led, without, 1)
	check(s.t, s.kubelet.start(strings.Fields(command)[1:]))
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	const want = "unable to load bootstrap kubeconfig: stat "
	err = s.kubelet.runs.Wait(ctx)
	if err == nil || !strings.Contains(s.kubelet.runs.Tail(4<<10), want) {
		s.t.Errorf("without the certificate of its hub the kubelet ends with %v: want %q", err, want)
	}
	check(s.t, os.Remove(s.at(without)))
}

// heartbeats: the cloud takes heartbeats from now on.
func heartbeats(t *testing.T, c *cloud.Cloud, when string) {
	t.Helper()
	version := func() string {
		leases := c.Client().CoordinationV1().Leases(contract.NodeLeaseNamespace)
		l, err := leases.Get(t.Context(), nodeName, metav1.GetOptions{})
		if err != nil {
			return ""
		}
		return l.ResourceVersion
	}
	for range 2 {
		before := version()
		testkit.Until(t, 2*time.Minute, "heartbeats "+when, func() bool {
			now := version()
			return now != "" && now != before
		})
	}
}

// tenant makes a pod of the node.
func tenant(t *testing.T, c *cloud.Cloud) (name string) {
	t.Helper()
	const pod = "tenant"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	accounts := c.Client().CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	_, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	check(t, err)
	_, err = c.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec: corev1.PodSpec{
			NodeName: nodeName, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	return pod
}

// answers waits until a pod of this machine does.
func (k *realKubelet) answers(t *testing.T, pod string) {
	t.Helper()
	testkit.Until(t, time.Minute, "an answer of the pod", func() bool {
		url := "http://" + net.JoinHostPort(k.first, strconv.Itoa(podPort))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		check(t, err)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return err == nil && string(text) == pod+"\n"
	})
}
