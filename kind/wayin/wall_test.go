package wayin_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/sim/docker"
)

// wall has a worker behave as one behind NAT. What the cloud begins is dropped, connections of before too. What the
// worker or a pod on it begins reaches two ports of the control plane, and nothing else there. The cloud is the machine
// of the control plane, its pods, and the machine of this test.
const wall = `table ip wall {
  set cloud { type ipv4_addr; flags interval; elements = { %[1]s } }
  chain in {
    type filter hook input priority -5;
    ip saddr @cloud ct direction original counter drop
  }
  chain through {
    type filter hook forward priority -5;
    ip saddr @cloud ct direction original counter drop
    ip daddr %[2]s tcp dport { 6443, %[3]d } accept
    ip daddr @cloud ct direction original counter reject
  }
  chain out {
    type filter hook output priority 0;
    ip daddr %[2]s tcp dport { 6443, %[3]d } accept
    ip daddr @cloud ct direction original counter reject
  }
}
`

// buildWalls walls all workers in.
func buildWalls(ctx context.Context) {
	GinkgoHelper()
	pods := strings.TrimSpace(typed(ctx,
		"kubectl get nodes -l node-role.kubernetes.io/control-plane -o jsonpath={.items[0].spec.podCIDR}"))
	Expect(pods).To(ContainSubstring("/"), "the control plane has no network of pods")
	text := fmt.Sprintf(wall, strings.Join([]string{on.cloud, pods, on.run.Network.Gateway}, ", "), on.cloud, gatePort)
	say("%s", text)
	for n := range nodes {
		Expect(machine(n+1).Feed(ctx, strings.NewReader(text), "nft", "-f", "-")).To(Succeed(), node(n+1))
	}
}

// calls reports whether anything answers by TLS at an address of an own machine.
func calls(ctx context.Context, from docker.Container, address string) error {
	_, err := from.Exec(ctx, "curl", "-sk", "-m", "3", "-o", "/dev/null", "https://"+address+"/healthz")
	return err
}

// fetches fetches the page of a pod from the control plane, by the routes of the pod network.
func fetches(ctx context.Context, address string) error {
	_, err := on.run.Control().Exec(ctx, "curl", "-sf", "-m", "3", "-o", "/dev/null", "http://"+address+":8080/")
	return err
}

// holds judges the walls: each way that they have to close is open (before) or closed, and the two that are left are
// open.
func holds(ctx context.Context, closed bool) {
	GinkgoHelper()
	is := Succeed()
	if closed {
		is = Not(Succeed())
	}
	at := podAddresses(ctx)
	for n := 1; n <= nodes; n++ {
		addresses, err := machine(n).Addresses(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(calls(ctx, on.run.Control(), addresses[0]+":10250")).To(is, "from the cloud to the kubelet of %s", node(n))
		Expect(fetches(ctx, at[node(n)])).To(is, "from the cloud to the pod of %s", node(n))
		Expect(calls(ctx, machine(n), on.cloud+":10250")).To(is, "from %s to another port of the cloud", node(n))
		for _, port := range []int{6443, gatePort} {
			Expect(calls(ctx, machine(n), fmt.Sprintf("%s:%d", on.cloud, port))).To(Succeed(), "from %s to %d", node(n), port)
		}
	}
}
