package installtest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/proctest"
	"github.com/weir-edge/weir/sim/testca"
)

// TestRotation: the authority of a real kube-apiserver is replaced, by way of a bundle of both, and the apiserver moves
// to another port. Only the kubelet's kubeconfig and the files that it names are changed on the node, as a tool of the
// cluster does it. The hub, which is not restarted, goes on to bring the kubelet's heartbeats to the cloud; each time
// another join of the node is well, and it leaves.
func TestRotation(t *testing.T) {
	c, _ := cloudtest.Start(t)
	built, err := parts.Find(t.Context(), proctest.Spawner(t), nil, func(m string) { t.Log(m) }, parts.HubCommand,
		"kubectl-weir")
	check(t, err)
	root := machine(t, c)
	s := newSystemd(t, root)
	s.restart("kubelet.service")
	s.heard(t)
	join := append([]string{"node", "join", "--pool=harbour", "--hub-binary=" + built[parts.HubCommand]}, ports(t)...)
	run := func(args ...string) string {
		t.Helper()
		return s.weirs(built["kubectl-weir"], args...)
	}
	beats := func(when string) {
		t.Helper()
		heartbeats(t, c, when)
	}
	again := func(when string) {
		t.Helper()
		beats(when)
		if out := run(join...); !strings.Contains(out, "is in pool harbour already") {
			t.Errorf("another join %s:\n%s", when, out)
		}
	}
	write := func(path string, text []byte) {
		t.Helper()
		check(t, os.WriteFile(s.at(path), text, 0o600))
	}
	run(join...)
	hub := s.hub.Process().Pid
	again("before")

	old, address := c.CA(), c.URL()
	next, err := testca.NewAuthority("weir-testbed-cloud-2")
	check(t, err)
	check(t, c.Trust(old, next))
	write("/etc/kubernetes/pki/ca.crt", append(append([]byte(nil), old.CertPEM()...), next.CertPEM()...))
	again("with both authorities")

	check(t, c.Move(t.Context(), next))
	conf, err := os.ReadFile(s.at("/etc/kubernetes/kubelet.conf"))
	check(t, err)
	write("/etc/kubernetes/kubelet.conf", bytes.ReplaceAll(conf, []byte(address), []byte(c.URL())))
	again("at another port, where the other authority has signed")

	pair, err := c.KubeletCertificate(nodeName, 0) // by the other authority
	check(t, err)
	write("/var/lib/kubelet/pki/kubelet-client-current.pem", append(append([]byte(nil), pair.CertPEM...), pair.KeyPEM...))
	again("by a certificate of the other authority")
	check(t, c.Trust(next))
	write("/etc/kubernetes/pki/ca.crt", next.CertPEM())
	again("with the other authority alone")
	if now := s.hub.Process().Pid; now != hub {
		t.Error("the hub was started anew")
	}
	run("node", "leave")
	beats("after the node has left")
}
