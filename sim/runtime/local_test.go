package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/link"
)

// helperEnv turns the test binary into a runner that is about to be killed.
const helperEnv = "WEIR_RUNTIME_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	site, err := (&Local{}).Up(context.Background(), Topology{Pools: []Pool{{Name: "stock", Nodes: 1, Mode: Stock}}}, nil)
	if err != nil {
		panic(err)
	}
	local := site.(*localSite)
	fmt.Println(filepath.Dir(local.logDir), local.cloud.APIServer().PID())
	time.Sleep(time.Hour)
}

func up(t *testing.T, topology Topology) Site {
	t.Helper()
	site, err := (&Local{LogDir: t.TempDir()}).Up(t.Context(), topology, func(m string) { t.Log(m) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := site.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return site
}

// clientOf connects as an identity of the workload from a node.
func clientOf(t *testing.T, s Site, node, identity string) *kubernetes.Clientset {
	t.Helper()
	endpoint, err := s.Endpoint(node, identity)
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.Token(t.Context(), identity)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(endpoint.RESTConfig(token))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func bytesOf(l *link.Pool, node, class string, dir link.Direction) int64 {
	return link.Sum(l.Counters(), func(c link.Counter) bool { return c.Node == node && c.Class == class && c.Dir == dir })
}

func TestStockSite(t *testing.T) {
	t.Parallel()
	uplink := Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond}
	site := up(t, Topology{Pools: []Pool{
		{Name: "stock", Nodes: 2, Mode: Stock, Uplink: uplink},
		{Name: "reference", Nodes: 1, Mode: Stock, Uplink: uplink},
	}})
	list := func(node, identity string) {
		t.Helper()
		if _, err := clientOf(t, site, node, identity).DiscoveryV1().EndpointSlices("").List(
			t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}
	list("stock-1", "kube-proxy")
	list("stock-2", "coredns")
	list("stock-2", "coredns")

	stock := site.Link("stock")
	for _, c := range []struct{ node, class string }{{"stock-1", "kube-proxy"}, {"stock-2", "coredns"}} {
		if down, up := bytesOf(stock, c.node, c.class, link.Down), bytesOf(stock, c.node, c.class, link.Up); down < 1000 ||
			up < 500 {
			t.Errorf("%v: %d bytes down, %d up", c, down, up)
		}
	}
	if n := len(site.Link("reference").Counters()); n != 0 {
		t.Errorf("the other pool's link carried something: %d counters", n)
	}
	if site.LAN("stock") != nil || site.Link("nowhere") != nil {
		t.Error("a link that the topology does not have")
	}

	apiserver, err := site.Part(APIServer)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(apiserver.Kill(), Start(t.Context(), site, APIServer)); err != nil {
		t.Fatal(err)
	}
	list("stock-1", "kube-proxy")
	if m, err := apiserver.Metrics(t.Context()); err != nil || m.Sum("apiserver_request_total") == 0 {
		t.Errorf("metrics: %d series, %v", len(m), err)
	}
	if parts := site.Parts(); len(parts) != 1 || parts[0] != APIServer {
		t.Errorf("parts %v", parts)
	}
	for _, err := range []error{
		second(site.Part("hub/stock-1")), second(site.Endpoint("nobody", "x")), second(site.Tool("kubectl")),
		second(site.Token(t.Context(), "nobody")),
	} {
		if err == nil {
			t.Error("something that is not there was found")
		}
	}
}

func TestHubOnlySite(t *testing.T) {
	t.Parallel()
	site := up(t, Topology{Tools: []string{"kubectl"}, Pools: []Pool{
		{
			Name: "edge", Nodes: 2, Mode: HubOnly, Unread: true,
			Uplink: Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond},
		},
	}})
	if err := Start(t.Context(), site, HubOf("edge-1"), HubOf("edge-2")); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, site, "edge-1", "json-client").CoreV1().Services("").List(
		t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	uplink := site.Link("edge")
	for _, class := range []string{ClassPool, ClassNode} { // control carries probes, which these spare
		if n := bytesOf(uplink, "edge-1", class, link.Down); n == 0 {
			t.Errorf("class %s: nothing crossed the link", class)
		}
	}
	hub, err := site.Part(HubOf("edge-1"))
	if err != nil {
		t.Fatal(err)
	}
	if u, err := hub.Usage(); err != nil || u.RSSAnon == 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if m, err := hub.Metrics(t.Context()); err != nil || len(m) == 0 {
		t.Errorf("metrics: %d series, %v", len(m), err)
	}
	var status map[string]any
	if err := hub.Status(t.Context(), &status); err != nil || len(status) == 0 {
		t.Errorf("status %v, %v", status, err)
	}
	if err := errors.Join(hub.Kill(), hub.Start(t.Context())); err != nil {
		t.Error(err)
	}
	if path, err := site.Tool("kubectl"); err != nil || path == "" {
		t.Errorf("kubectl: %q, %v", path, err)
	}
}

func TestWeirSite(t *testing.T) {
	t.Parallel()
	site := up(t, Topology{Pools: []Pool{{
		Name: "edge", Nodes: 2, Mode: Weir, Unread: true,
		Uplink: Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond},
		LAN:    &Link{RTT: time.Millisecond},
	}}})
	want := []PartID{APIServer, CoordinatorOf("edge"), HubOf("edge-1"), HubOf("edge-2")}
	if got := site.Parts(); !slices.Equal(got, want) {
		t.Fatalf("parts %v, want %v", got, want)
	}
	if err := Start(t.Context(), site, want[1:]...); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, site, "edge-2", "kube-proxy").DiscoveryV1().EndpointSlices("").List(
		t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	coordinator, err := site.Part(CoordinatorOf("edge"))
	if err != nil {
		t.Fatal(err)
	}
	var status map[string]any
	if err := coordinator.Status(t.Context(), &status); err != nil || len(status) == 0 {
		t.Errorf("status %v, %v", status, err)
	}
	if m, err := coordinator.Metrics(t.Context()); err != nil || len(m) == 0 {
		t.Errorf("metrics: %d series, %v", len(m), err)
	}
	lan := site.LAN("edge")
	for _, node := range []string{"edge-1", "edge-2"} {
		if n := bytesOf(lan, node, classLAN, link.Up); n == 0 {
			t.Errorf("%s said nothing to the coordinator", node)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestKillOfTheRunnerLeavesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.Command(self)
	runner.Env = append(os.Environ(), helperEnv+"=1")
	runner.Stderr = os.Stderr
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	scratch, pidText, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(pidText)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()

	deadline, tick := time.After(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Stat(scratch)
		if gone(pid) && errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after 20s: apiserver gone: %t, scratch directory: %v", gone(pid), err)
		}
	}
}

// gone reports whether a process has ended; a zombie has, it waits for its new parent.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestUpCleansUpAfterItself(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := (&Local{}).Up(ctx, Topology{Pools: []Pool{{Name: "a", Nodes: 1, Mode: Stock}}}, func(m string) {
		if strings.HasPrefix(m, "kube-apiserver is ready") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTopologyIsChecked(t *testing.T) {
	good := Pool{Name: "a", Nodes: 5, Mode: Weir}
	if err := (Topology{Pools: []Pool{good}}).Validate(); err != nil {
		t.Error(err)
	}
	for name, pools := range map[string][]Pool{
		"none":      nil,
		"name":      {{Name: "A_b", Nodes: 1, Mode: Stock}},
		"no nodes":  {{Name: "a", Mode: Stock}},
		"too many":  {{Name: "a", Nodes: 201, Mode: Stock}},
		"mode":      {{Name: "a", Nodes: 1, Mode: "fast"}},
		"twice":     {good, good},
		"node name": {{Name: "a", Nodes: 1, Mode: Stock}, {Name: "a-1", Nodes: 1, Mode: Stock}},
	} {
		if err := (Topology{Pools: pools}).Validate(); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestPartIDs(t *testing.T) {
	if id := HubOf("edge-1"); id != "hub/edge-1" || id.Kind() != "hub" || id.Of() != "edge-1" {
		t.Errorf("%s: %s %s", id, id.Kind(), id.Of())
	}
	if id := CoordinatorOf("a"); id.Kind() != "coordinator" || id.Of() != "a" || APIServer.Kind() != "apiserver" {
		t.Errorf("%s", id)
	}
}
