package pools

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// network is one of a Pool, with ports: one, or the first and the last.
func network(cidr string, ports ...[2]int32) poolv1.Reach {
	r := poolv1.Reach{CIDR: cidr}
	for _, p := range ports {
		r.Ports = append(r.Ports, poolv1.ReachPort{Port: p[0], EndPort: p[1]})
	}
	return r
}

// TestLeaderHubOfAReach: hubs are told what the cloud may reach in words that they accept, and of nothing if that is
// nothing. What no leader dials is left out, and the Pool says so.
func TestLeaderHubOfAReach(t *testing.T) {
	p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}
	var most, more []poolv1.Reach
	for i := range int32(8) {
		one := network(fmt.Sprintf("10.%d.0.0/16", i))
		for j := range int32(16) {
			one.Ports = append(one.Ports, poolv1.ReachPort{Port: 10000 + 1000*j, EndPort: 10500 + 1000*j})
		}
		most = append(most, one)
	}
	more = append(slices.Clone(most), network("10.99.0.0/16"))
	for about, c := range map[string]struct {
		reach   []poolv1.Reach
		want    string // "many": as many as may be
		refused []string
	}{
		"nothing": {},
		"networks": {
			reach: []poolv1.Reach{
				network("fd00:1::/64", [2]int32{8080}), network("10.244.0.0/16", [2]int32{9100}, [2]int32{8000, 8100}),
				network("10.0.9.7/32"),
			},
			want: "10.0.9.7/32,10.244.0.0/16:8000-8100,10.244.0.0/16:9100,fd00:1::/64:8080",
		},
		"ports that overlap": {
			reach: []poolv1.Reach{
				network("10.0.0.0/8", [2]int32{80}, [2]int32{80, 90}, [2]int32{91}, [2]int32{443, 443}),
				network("fd00:0::/64", [2]int32{1}), network("FD00::/64"), // names of one network
			},
			want: "10.0.0.0/8:80-91,10.0.0.0/8:443,fd00::/64",
		},
		"all, and what nobody dials within": {reach: []poolv1.Reach{network("0.0.0.0/0")}, want: "0.0.0.0/0"},
		"what nobody dials": {
			reach: []poolv1.Reach{
				network("127.0.0.0/8"), network("169.254.169.254/32", [2]int32{80}), network("fe80::/10"),
				network("ff02::/16"), network("224.0.0.0/4"), network("100.100.100.200/32"), network("10.0.9.7/32"),
			},
			want: "10.0.9.7/32",
			refused: []string{
				`"127.0.0.0/8": each address of it is a loopback address, and no leader dials that`,
				`"169.254.169.254/32": each address of it is a link-local address`, `"fe80::/10": each`, `"ff02::/16": each`,
				`"224.0.0.0/4": each address of it is a multicast address`,
				`"100.100.100.200/32": each address of it is a metadata address`,
			},
		},
		"that alone": {reach: []poolv1.Reach{network("::1/128")}, refused: []string{`"::1/128": each`}},
		"what no CRD lets pass": {
			reach: []poolv1.Reach{
				network("10.244.3.4/16"), network("::ffff:10.0.0.0/104"), network("edge-1"), network(strings.Repeat("1", 99)),
				network("10.0.0.0/8", [2]int32{0}, [2]int32{65536}, [2]int32{9, 8}, [2]int32{1, 65536}, [2]int32{-1, 7},
					[2]int32{22}),
				network("10.1.0.0/16", [2]int32{0, 1}),
			},
			want: "10.0.0.0/8:22",
			refused: []string{
				"network 10.244.3.4/16: want 10.244.0.0/16", `network "::ffff:10.0.0.0/104": want a network as in`,
				`"edge-1": want a network`, `"` + strings.Repeat("1", 60) + `": want`,
				`"10.0.0.0/8": ports 0 to 0: want 1 to 65535`,
				"ports 65536 to 0", "ports 9 to 8", "ports 1 to 65536", "ports -1 to 7", `"10.1.0.0/16": ports 0 to 1`,
			},
		},
		"many": {reach: most, want: "many"},
		"more": {
			reach:   more,
			refused: []string{"129 networks and ranges of ports, want 128 at most: hubs are told none"},
		},
	} {
		own := &poolv1.Pool{Spec: poolv1.Spec{Reach: c.reach}}
		all, err := leaderHub(&view{name: p.Name, nodepool: p, own: own})
		if err != nil {
			t.Fatal(err)
		}
		e := all[1].(*corev1.Endpoints)
		is, there := e.Annotations[contract.LeaderHubReach]
		if is != c.want && c.want != "many" || there != (c.want != "") {
			t.Errorf("%s: %q, want %q", about, is, c.want)
		}
		signed, err := directory.Parse(p.Name, e, 7)
		if err != nil || c.want == "many" && len(signed.Reach) != directory.MaxReach {
			t.Errorf("%s: it is not signed: %v", about, err)
		}
		was := e.DeepCopy()
		was.Annotations[contract.LeaderHubReach] = "10.6.6.0/24"
		if replaced(was, e); was.Annotations[contract.LeaderHubReach] != is {
			t.Errorf("%s: what was told before stays: %v", about, was.Annotations)
		}
		condition := reachOf(own).condition()
		says := strings.Split(condition.Message, "; ")
		for i, want := range c.refused {
			if i >= len(says) || !strings.Contains(says[i], want) {
				t.Errorf("%s: %q, want %s", about, says, want)
			}
		}
		switch {
		case len(c.refused) > 0 && (condition.Reason != "Refused" || condition.Status != metav1.ConditionFalse ||
			len(says) != len(c.refused)),
			len(c.refused) == 0 && c.want != "" && (condition.Reason != "Accepted" ||
				condition.Status != metav1.ConditionTrue),
			len(c.reach) == 0 && condition.Type != "":
			t.Errorf("%s: %+v", about, condition)
		}
	}
}

// TestReachAccepted: the Pool says whether hubs are told what the cloud may reach, and nothing if it names nothing.
func TestReachAccepted(t *testing.T) {
	v, _, clk := told()
	for _, c := range []struct {
		reach []poolv1.Reach
		want  string
	}{
		{nil, ""}, {[]poolv1.Reach{network("10.0.9.7/32")}, "Accepted"},
		{[]poolv1.Reach{network("127.0.0.0/8"), network("10.0.9.7/32")}, "Refused"}, {nil, ""},
	} {
		v.own.Spec.Reach = c.reach
		describe(v, clk.Now())
		is := meta.FindStatusCondition(v.own.Status.Conditions, poolv1.ReachAccepted)
		if (is == nil) != (c.want == "") || is != nil && (is.Reason != c.want || is.Message == "") {
			t.Errorf("%v: %+v, want %q", c.reach, is, c.want)
		}
		clk.Step(time.Minute)
	}
}
