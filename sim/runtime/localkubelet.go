package runtime

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/loopback"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	kubeletHealthPort = 10248
	runtimePort       = 10240 // of what steers a hollow node's containers
	// PodPort is what every pod of AppImage listens on.
	PodPort = 8080
	// AppImage is what a scenario's own pods run: on hollow nodes nothing that could be looked up, on others kind/app.
	AppImage = "localhost/weir-app:dev"
	// maxSocketPath is what the kernel takes for the path of a unix socket.
	maxSocketPath = 107
)

// DialAddress is where the listener of a pod of a hollow node is: a pod's address may not be a loopback address, and a
// listener's must be, since nobody may put addresses on a real interface.
func DialAddress(podIP string) string {
	if rest, ok := strings.CutPrefix(podIP, "10."); ok {
		return "127." + rest
	}
	return podIP
}

// addMachine prepares the hollow node of a node: its container runtime, whose containers outlive a kubelet, and its
// kubelet.
func (x *localPool) addMachine(ctx context.Context, i int, name, address string) (err error) {
	if x.pods == nil {
		if x.pods, err = loopback.Reserve(ctx); err != nil {
			return err
		}
		x.site.blocks = append(x.site.blocks, x.pods)
	}
	dir, err := x.site.spawner.Scratch(x.Name, name, "machine")
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "cri.sock")
	if len(socket) > maxSocketPath {
		return fmt.Errorf("the path of the socket %s is longer than %d bytes: set TMPDIR to a shorter folder", socket,
			maxSocketPath)
	}
	perNode := loopback.Size / x.Nodes
	first, err := x.pods.Addr(i*perNode + 1)
	if err != nil {
		return err
	}
	launch := parts.Launch{
		Spawner: x.site.spawner,
		Path:    x.site.tools[cloud.HollowNode],
		Dir:     dir,
	}
	control := net.JoinHostPort(address, strconv.Itoa(runtimePort))
	r := launch
	r.Name, r.LogFile = "containers of "+name, filepath.Join(x.site.logDir, "containers-"+name+".log")
	args := []string{
		"runtime", "--endpoint=unix://" + socket, "--control-address=" + control,
		"--addresses=" + string(cmp.Or(x.Addresses, SameAddresses)), "--address-file=" + filepath.Join(dir, "addresses.json"),
		"--first-address=" + first, "--pods=" + strconv.Itoa(perNode), "--port=" + strconv.Itoa(PodPort),
	}
	if x.Names {
		args = append(args, "--program="+DNSImage+"="+x.site.names.dns)
	}
	x.site.addPart(ContainersOf(name), parts.NewCommand(r, args, "http://"+control, http.DefaultTransport))

	m := Machine{Containers: "http://" + control}
	var kubeconfig string
	if m.Kubelet, kubeconfig, err = x.kubeletConfig(dir, name, 0); err != nil {
		return err
	}
	if x.Mode != Stock {
		if m.HubData, err = x.site.spawner.Scratch(x.Name, name, "data"); err != nil {
			return err
		}
		if err := m.Boots(); err != nil {
			return err
		}
	}
	if x.Names {
		if err := x.addNames(ctx, dir, name, address, &m); err != nil {
			return err
		}
	}
	x.site.machines[name] = m
	timers := x.site.topology.timers()
	health := net.JoinHostPort(address, strconv.Itoa(kubeletHealthPort))
	k := launch
	k.Name, k.LogFile = "kubelet of "+name, filepath.Join(x.site.logDir, "kubelet-"+name+".log")
	x.site.addPart(KubeletOf(name), parts.NewCommand(k, []string{
		"kubelet", "--name=" + name, "--kubeconfig=" + kubeconfig, "--endpoint=unix://" + socket,
		"--root-dir=" + filepath.Join(dir, "kubelet"),
		"--labels=" + x.nodeLabels(), "--health-address=" + health, "--max-pods=" + strconv.Itoa(perNode),
		"--lease-duration=" + timers.Lease.Truncate(time.Second).String(), "--status-period=" + timers.StatusPeriod.String(),
	}, "http://"+health, http.DefaultTransport))
	return nil
}

// kubeletConfig is all that a kubelet knows of the cluster, also as a kubeconfig: in a pool with Weir its hub, else the
// cloud behind the link.
func (x *localPool) kubeletConfig(dir, name string, life time.Duration) (*rest.Config, string, error) {
	endpoint, err := x.site.Endpoint(name, ClassNode)
	if err != nil {
		return nil, "", err
	}
	pair, err := x.site.cloud.KubeletCertificate(name, life)
	if err != nil {
		return nil, "", err
	}
	config := &rest.Config{Host: endpoint.URL, TLSClientConfig: endpoint.Trust()} // the hub's file need not be there yet
	config.CertData, config.KeyData = pair.CertPEM, pair.KeyPEM
	data, err := testca.KubeconfigOf(&clientcmdapi.Cluster{
		Server: endpoint.URL, CertificateAuthorityData: endpoint.CAPEM, CertificateAuthority: endpoint.CAFile,
	}, pair, "")
	if err != nil {
		return nil, "", err
	}
	path, err := testca.WriteFile(dir, "kubeconfig", data)
	return config, path, err
}

// nodeLabels are those that a kubelet registers its node with.
func (x *localPool) nodeLabels() string {
	if x.Zoneless {
		return ""
	}
	return corev1.LabelTopologyZone + "=" + x.Name
}
