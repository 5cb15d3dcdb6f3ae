package installtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

const nodeName = "edge-1"

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// machine is a node that has joined its cluster as kubeadm does it.
func machine(t *testing.T, c *cloud.Cloud) string {
	t.Helper()
	root := t.TempDir()
	pair, err := c.KubeletCertificate(nodeName, 0)
	check(t, err)
	write := func(path string, text []byte) {
		t.Helper()
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		check(t, os.WriteFile(filepath.Join(root, path), text, 0o600))
	}
	const current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	write(current, append(append([]byte(nil), pair.CertPEM...), pair.KeyPEM...))
	write("/etc/kubernetes/pki/ca.crt", c.CA().CertPEM())
	write("/etc/kubernetes/kubelet.conf", fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: default
clusters:
- {name: default, cluster: {server: %q, certificate-authority: pki/ca.crt}}
contexts:
- {name: default, context: {cluster: default, user: default}}
users:
- {name: default, user: {client-certificate: %s, client-key: %[2]s}}
`, c.URL(), "../.."+current)) // the hub reads these files itself: they are below the machine's folder
	write("/usr/lib/systemd/system/kubelet.service",
		[]byte("[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml "+
			"--kubeconfig=/etc/kubernetes/kubelet.conf\n"))
	for _, dir := range []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib"} {
		check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	ctx := t.Context()
	check(t, c.CreateNodes(ctx, cloud.Node{Name: nodeName, Pool: "harbour", Address: "127.0.0.1"}))
	now := metav1.NewMicroTime(time.Now())
	_, err = c.Client().CoordinationV1().Leases(contract.NodeLeaseNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(nodeName), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &now,
		},
	}, metav1.CreateOptions{})
	check(t, err)
	// as weir-manager makes it.
	_, err = c.Client().CoreV1().Services(contract.ManagerNamespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: contract.LeaderHubPrefix + "harbour", Annotations: map[string]string{
				contract.LeaderHubMode: contract.ModeLeaderHubs,
			},
		},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}, metav1.CreateOptions{})
	check(t, err)
	return root
}

// files are all of a machine.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		out[strings.TrimPrefix(path, root)] = info.Mode().String() + " " + string(text)
		return nil
	}))
	return out
}

func same(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s is not as it was", path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is left behind", path)
		}
	}
}

// ports are three free ones, as flags, below those that the system gives to connections: one of these could be taken
// while the hub is restarted.
func ports(t *testing.T) (flags []string) {
	t.Helper()
	names := []string{"--secure-port", "--health-port", "--pool-port"}
	for port := 12000 + os.Getpid()*97%18000; len(flags) < len(names); port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			check(t, l.Close())
			flags = append(flags, fmt.Sprintf("%s=%d", names[len(flags)], port))
		}
	}
	return flags
}

// TestNode: a node of a real cluster joins, and its kubelet is heard by the real kube-apiserver through the real hub;
// it leaves, and each file is as it was. Killed between them, the command leaves a node that is heard, and the next one
// goes on. A hub that cannot serve is taken off by itself, and the Node says why.
func TestNode(t *testing.T) {
	c, _ := cloudtest.Start(t)
	spawner := proctest.Spawner(t)
	built, err := parts.Find(t.Context(), spawner, nil, func(m string) { t.Log(m) }, parts.HubCommand, "kubectl-weir")
	check(t, err)
	weir := built["kubectl-weir"]
	root := machine(t, c)
	s := newSystemd(t, root)
	for _, args := range [][]string{{"daemon-reload"}, {"restart", "kubelet.service"}} {
		_, err := s.do(args)
		check(t, err)
	}
	s.heard(t)
	before := files(t, root)
	join := append([]string{"node", "join", "--pool=harbour", "--hub-binary=" + built[parts.HubCommand]}, ports(t)...)
	run := func(args ...string) (string, error) {
		t.Helper()
		var out bytes.Buffer
		err := s.weir(weir, &out, args...).Run()
		return out.String(), err
	}
	condition := func() (found *corev1.NodeCondition) {
		t.Helper()
		n, err := c.Client().CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
		check(t, err)
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == contract.JoinedCondition {
				found = &n.Status.Conditions[i]
			}
		}
		return found
	}

	out, err := run(join...)
	if err != nil {
		t.Fatalf("join: %v\n%s", err, out)
	}
	s.heard(t)
	if got := condition(); got == nil || got.Status != corev1.ConditionTrue {
		t.Errorf("the Node says %+v", got)
	}
	if out, err := run("node", "status"); err != nil || !strings.Contains(out, "calls its hub, for good") ||
		// its ip is not the real one.
		!strings.Contains(out, "call the cloud: "+contract.PodsAddress+" is not an address of this machine") {
		t.Errorf("status: %v\n%s", err, out)
	}
	if s.address != contract.PodsAddress {
		t.Errorf("the address for pods is %q", s.address)
	}
	certificates(t, run)
	s.bypass(c.URL(), run)
	if out, err := run(join...); err != nil || !strings.Contains(out, "is in pool harbour already") {
		t.Errorf("join again: %v\n%s", err, out)
	}
	told := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"what a hub tells when it is in its pool"}}}`,
		contract.HoldsAnnotation)
	_, err = c.Client().CoreV1().Nodes().Patch(t.Context(), nodeName, types.MergePatchType, told, metav1.PatchOptions{})
	check(t, err)
	if out, err := run("node", "leave"); err != nil {
		t.Fatalf("leave: %v\n%s", err, out)
	}
	if n, err := c.Client().CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{}); err != nil ||
		n.Annotations[contract.HoldsAnnotation] != "" {
		t.Errorf("after a leave the Node still says what a hub holds: %v, %v", n.Annotations, err)
	}
	s.heard(t)
	same(t, before, files(t, root))
	if s.address != "" {
		t.Errorf("the machine still has the address %s", s.address)
	}
	if got := condition(); got != nil {
		t.Errorf("the Node says %+v", got)
	}

	for _, at := range []string{
		"/etc/systemd/system/weir-hub.service", "/etc/weir/node-authority.crt",
		"/run/systemd/system/kubelet.service.d/90-weir.conf",
	} {
		var out bytes.Buffer
		cmd := s.weir(weir, &out, join...)
		check(t, cmd.Start())
		testkit.Until(t, time.Minute, at, func() bool { _, err := os.Stat(s.at(at)); return err == nil })
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		s.heard(t)
		if out, err := run(join...); err != nil {
			t.Fatalf("join after a kill at %s: %v\n%s", at, err, out)
		}
		s.heard(t)
		if out, err := run("node", "leave"); err != nil {
			t.Fatalf("leave: %v\n%s", err, out)
		}
		same(t, before, files(t, root))
	}

	wrong := filepath.Join(t.TempDir(), "weir-hub")
	//nolint:gosec // a program
	check(t, os.WriteFile(wrong, []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo weir-hub v0 && exit\nexit 1\n"), 0o755))
	out, err = run(append(join, "--hub-binary="+wrong, "--timeout=2s")...)
	if err == nil || !strings.Contains(out, "the node is as it was") {
		t.Errorf("a hub that ends at once: %v\n%s", err, out)
	}
	s.heard(t)
	same(t, before, files(t, root))
	if got := condition(); got == nil || got.Status != corev1.ConditionFalse ||
		!strings.Contains(got.Message, "weir-hub.service failed") {
		t.Errorf("the Node says %+v", got)
	}
}

// certificates holds that a node tells when its certificates end, and who signed them: the kubelet's, and what the
// hub's own authority has signed.
func certificates(t *testing.T, run func(args ...string) (string, error)) {
	t.Helper()
	out, err := run("node", "certificate", "-o", "json")
	check(t, err)
	var all []install.Certificate
	check(t, json.Unmarshal([]byte(out), &all))
	signer := map[string]string{}
	for n, c := range all {
		signer[c.What+" "+c.Subject+" "+c.File] = c.Signer
		if c.Begin.IsZero() || n > 0 && c.End.Before(all[n-1].End) {
			t.Errorf("%d: %+v", n, c)
		}
	}
	own := "CN=" + contract.NodeAuthorityPrefix + nodeName
	for what, by := range map[string]string{
		"kubelet CN=system:node:edge-1,O=system:nodes " +
			"/var/lib/kubelet/pki/kubelet-client-current.pem": "CN=weir-testbed-cloud",
		"kubelet CN=system:node:edge-1,O=system:nodes /var/lib/weir-hub/pki/kubelet.pem": own,
		"authority " + own + " /etc/weir/node-authority.crt":                             own,
	} {
		if signer[what] != by {
			t.Errorf("%s is signed by %q: want %q in\n%s", what, signer[what], by, out)
		}
	}
	if out, err := run("node", "certificate"); err != nil || !strings.HasPrefix(out, "CERTIFICATE ") ||
		strings.Count(out, "\n") != len(all)+1 {
		t.Errorf("as a table: %v\n%s", err, out)
	}
}
