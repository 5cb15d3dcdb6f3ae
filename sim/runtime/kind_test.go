package runtime

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/sim/cloud"
)

func TestWhoIsConnected(t *testing.T) {
	const tables = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 020012AC:192B 030012AC:D2F0 01 00000000:00000000
   1: 020012AC:192B 040012AC:D2F2 06 00000000:00000000
   2: 020012AC:C001 050012AC:192B 01 00000000:00000000
  sl  local_address                         remote_address
   0: 0000000000000000FFFF0000020012AC:192B 0000000000000000FFFF0000060012AC:D2F4 01 00000000
   1: 000080FE00000000FF005450060500FE:192B 000080FE00000000FF005450070500FE:D2F6 01 00000000
   2: nonsense:192B nonsense:1 01
`
	var got []string
	for peer := range connectedTo(tables, 6443) {
		got = append(got, peer)
	}
	slices.Sort(got)
	// Not those that are closed (172.18.0.4), that go out (172.18.0.5), or that nobody can read.
	want := []string{"172.18.0.3", "172.18.0.6", "fe80::5054:ff:fe00:507"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Flags are added one by one to what kind gives; with stock timers there are none.
func TestTimersOfAKindCluster(t *testing.T) {
	stock := cloud.StockTimers()
	if flags, lines := kubeadmFlags(stock), kubeletTimers(stock); flags != nil || lines != "" {
		t.Errorf("stock timers: %v and %q", flags, lines)
	}
	fast := stock.Faster(2.5)
	flags := kubeadmFlags(fast)
	if len(flags) != 1 {
		t.Fatalf("got %v", flags)
	}
	var ops []struct {
		Op, Path string
		Value    struct{ Name, Value string }
	}
	if err := yaml.Unmarshal([]byte(flags[0].Patch), &ops); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range ops {
		got[o.Path+o.Value.Name] = o.Value.Value
	}
	for name, want := range map[string]string{
		"/apiServer/extraArgs/-default-unreachable-toleration-seconds": "120",
		"/controllerManager/extraArgs/-node-monitor-grace-period":      "20s",
		"/controllerManager/extraArgs/-node-eviction-rate":             "0.25",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if want := "nodeLeaseDurationSeconds: 16\n"; !strings.HasPrefix(kubeletTimers(fast), want) {
		t.Errorf("got %q, want it to begin with %q", kubeletTimers(fast), want)
	}
}
