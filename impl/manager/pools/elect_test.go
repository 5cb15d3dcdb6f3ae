package pools

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// member is a Node that is Ready, and others that are not quite.
func member(i int, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n-%d", i), Labels: map[string]string{}}}
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: n.Name}, {Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i)},
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func lost(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func cutOff(n *corev1.Node) {
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
		Type: contract.CutOffCondition, Status: corev1.ConditionTrue,
	})
}
func leaving(n *corev1.Node)     { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func marked(n *corev1.Node)      { n.Labels["role"] = "leader" }
func addressless(n *corev1.Node) { n.Status.Addresses = n.Status.Addresses[:1] }
func at(a string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Addresses[1].Address = a }
}

func names(all []nodepool.Leader) (names []string) {
	for _, l := range all {
		names = append(names, l.NodeName)
	}
	return names
}

// TestElect: who leads is who may, as many as are asked for, and who leads already goes on.
func TestElect(t *testing.T) {
	spec := nodepool.Spec{EnableLeaderElection: true, InterConnectivity: true}
	two, mark := spec, spec
	two.LeaderReplicas = 2
	mark.LeaderElectionStrategy, mark.LeaderNodeLabelSelector, mark.LeaderReplicas = nodepool.Mark,
		map[string]string{"role": "leader"}, 2
	none, apart, less := spec, spec, spec
	none.EnableLeaderElection, apart.InterConnectivity, less.LeaderReplicas = false, false, -3
	for name, c := range map[string]struct {
		spec   nodepool.Spec
		was    []string
		nodes  []corev1.Node
		want   []string
		silent bool
	}{
		"nobody is asked for":         {none, []string{"n-1"}, []corev1.Node{member(1)}, nil, false},
		"nobody reaches another":      {apart, nil, []corev1.Node{member(1)}, nil, false},
		"one, if fewer are asked for": {less, nil, []corev1.Node{member(1)}, []string{"n-1"}, false},
		"who leads goes on": {
			spec, []string{"n-3"}, []corev1.Node{member(1), member(2), member(3)}, []string{"n-3"}, false,
		},
		"the lost, cut off, leaving do not": {
			two, []string{"n-1", "n-2"}, []corev1.Node{
				member(1, lost), member(2, cutOff), member(3, leaving), member(4, addressless), member(5),
			}, []string{"n-5"}, false,
		},
		"one is replaced, the other goes on": {
			two, []string{"n-1", "n-2"}, []corev1.Node{member(1, lost), member(2), member(3)}, []string{"n-2", "n-3"}, false,
		},
		"the marked": {
			mark, []string{"n-1"}, []corev1.Node{member(1), member(2, marked), member(3, marked), member(4, marked, lost)},
			[]string{"n-2", "n-3"}, false,
		},
		"a silent pool keeps its leaders": {
			two, []string{"n-1", "n-2"}, []corev1.Node{member(1, lost), member(2, lost), member(3, lost)},
			[]string{"n-1", "n-2"}, true,
		},
		"but no Node that is gone": {
			two, []string{"n-1", "n-2"}, []corev1.Node{member(2, lost), member(3, lost)}, []string{"n-2"}, true,
		},
		"no loopback, no zone": {
			two, nil, []corev1.Node{member(1, at("127.0.0.1")), member(2, at("fe80::1%eth0")), member(3, at("fd00::3"))},
			[]string{"n-3"}, false,
		},
		"fewer are asked for than lead": {
			spec, []string{"n-2", "n-3"}, []corev1.Node{member(2), member(3)}, []string{"n-2"}, false,
		},
		"lost one by one": {
			two, []string{"n-1", "n-2"}, []corev1.Node{member(1, lost), member(2), member(3)}, []string{"n-1", "n-2"}, true,
		},
		"no node": {spec, []string{"n-1"}, nil, nil, false},
	} {
		p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour"}, Spec: c.spec}
		for _, n := range c.was {
			p.Status.LeaderEndpoints = append(p.Status.LeaderEndpoints, nodepool.Leader{NodeName: n, Address: "10.9.9.9"})
		}
		got := elect(p, c.nodes, c.silent)
		if !slices.Equal(names(got), c.want) {
			t.Errorf("%s: %v lead, want %v", name, names(got), c.want)
		}
		back := slices.Clone(c.nodes)
		slices.Reverse(back)
		if again := elect(p, back, c.silent); !slices.Equal(got, again) {
			t.Errorf("%s: the order of nodes counts: %v, %v", name, got, again)
		}
	}
}

// TestElectSpreads: pools of the same nodes have other leaders, and a node that comes moves nobody who leads.
func TestElectSpreads(t *testing.T) {
	nodes := []corev1.Node{}
	for i := range 20 {
		nodes = append(nodes, member(i+1))
	}
	lead := map[string]int{}
	for i := range 200 {
		p := &nodepool.NodePool{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("pool-%d", i),
			}, Spec: nodepool.Spec{EnableLeaderElection: true, InterConnectivity: true},
		}
		p.Status.LeaderEndpoints = elect(p, nodes, false)
		lead[p.Status.LeaderEndpoints[0].NodeName]++
		if now := elect(p, append(slices.Clone(nodes), member(21), member(22)), false); !slices.Equal(
			now, p.Status.LeaderEndpoints) {
			t.Errorf("a new node leads: %v, not %v", now, p.Status.LeaderEndpoints)
		}
	}
	if len(lead) < 15 {
		t.Errorf("200 pools have %d leaders of 20 nodes: %v", len(lead), lead)
	}
}
