package cloud

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/proc/proctest"
	"github.com/weir-edge/weir/sim/testca"
)

// TestCloud starts one real control plane and looks at it from all sides.
func TestCloud(t *testing.T) {
	s := proctest.Spawner(t)
	progress := func(m string) { t.Log(m) }
	binaries, err := Find(t.Context(), s, progress, KubeAPIServer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Config{
		Spawner: s, Binaries: binaries, LogDir: t.TempDir(), Hosts: []string{"127.10.9.1"}, Progress: progress,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.CreateNodes(t.Context(), Node{Name: "edge-1", Pool: "pool-a", Address: "127.10.1.1"},
		Node{Name: "edge-2", Pool: "pool-a", Address: "127.10.1.2"}); err != nil {
		t.Fatal(err)
	}

	t.Run("nodes", func(t *testing.T) { testNodes(t, c) })
	t.Run("clients have the grants of their component", func(t *testing.T) { testClients(t, c) })
	t.Run("hubs are nodes that may read the pool-scope resources", func(t *testing.T) { testHub(t, c) })
	t.Run("who may read without it", func(t *testing.T) { testJudge(t, c) })
	t.Run("what nodes wrote without it", func(t *testing.T) { testWrites(t, c) })
	t.Run("restart", func(t *testing.T) { testRestart(t, c) })
	t.Run("restore from a backup", func(t *testing.T) { testRestore(t, c) })
	t.Run("a second cloud beside it", func(t *testing.T) {
		other, err := Start(t.Context(), Config{Spawner: proctest.Spawner(t), Binaries: binaries, LogDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if other.Addr() == c.Addr() {
			t.Errorf("both at %s", c.Addr())
		}
	})
}

func testNodes(t *testing.T, c *Cloud) {
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), "edge-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Labels["apps.openyurt.io/nodepool"] != "pool-a" || n.Labels["topology.kubernetes.io/zone"] != "pool-a" {
		t.Errorf("labels %v", n.Labels)
	}
	if len(n.Status.Conditions) != 1 || n.Status.Conditions[0].Status != "True" ||
		n.Status.Addresses[0].Address != "127.10.1.1" {
		t.Errorf("status %+v", n.Status)
	}
}

// as returns a client with a token or a certificate.
func as(t *testing.T, c *Cloud, token string, pair *testca.Pair) *kubernetes.Clientset {
	t.Helper()
	config := &rest.Config{
		Host: c.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA().CertPEM()},
	}
	if pair != nil {
		config.CertData, config.KeyData = pair.CertPEM, pair.KeyPEM
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// lists lists what a client watches: slices, or Nodes if it is a network plugin.
func lists(t *testing.T, client *kubernetes.Clientset, of Client) (err error) {
	if of.probe.Resource == "nodes" {
		_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	} else {
		_, err = client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	}
	return err
}

func testClients(t *testing.T, c *Cloud) {
	for _, identity := range Clients {
		token, err := c.ClientToken(t.Context(), identity.Name)
		if err != nil {
			t.Fatal(err)
		}
		for after, counts := range map[time.Duration]bool{-time.Minute: false, time.Minute: true} {
			other, err := c.Retime(token, time.Now().Add(after))
			if err != nil {
				t.Fatal(err)
			}
			if err := lists(t, as(t, c, other, nil), identity); (err == nil) != counts {
				t.Errorf("%s with a token that ends %v from now: %v", identity.Name, after, err)
			}
		}
		client := as(t, c, token, nil)
		if err := lists(t, client, identity); err != nil {
			t.Errorf("%s: %v", identity.Name, err)
		}
		if _, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s lists secrets: %v, want forbidden", identity.Name, err)
		}
	}
	if _, err := c.ClientToken(t.Context(), "nobody"); err == nil {
		t.Error("a token for nobody")
	}
	if _, err := as(t, c, "", nil).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("anonymous lists nodes")
	}
}

func testHub(t *testing.T, c *Cloud) {
	own, err := c.HubCertificate("pool-a", "edge-1", 0)
	if err == nil {
		err = c.GrantHubs(t.Context(), "pool-a", "edge-1")
	}
	if err != nil {
		t.Fatal(err)
	}
	hub := as(t, c, "", own)
	if _, err := hub.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("slices: %v", err)
	}
	if _, err := hub.CoreV1().Endpoints("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("endpoints: %v", err)
	}
	pair, err := c.KubeletCertificate("edge-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	hub = as(t, c, "", pair)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}
	if _, err := hub.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), lease, metav1.CreateOptions{}); err !=
		nil {
		t.Errorf("own lease: %v", err)
	}
	lease.Name = "edge-2"
	if _, err := hub.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), lease,
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another node's lease: %v, want forbidden", err)
	}

	if pair, err = c.KubeletCertificate("edge-1", -time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := as(t, c, "", pair).CoreV1().Nodes().Get(t.Context(), "edge-1",
		metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a certificate that has expired: %v, want unauthorized", err)
	}
	if pair, err = c.KubeletCertificate("edge-1", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := as(t, c, "", pair).DiscoveryV1().EndpointSlices("").List(
		t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a kubelet lists slices: %v, want forbidden", err)
	}
}

func testRestart(t *testing.T, c *Cloud) {
	addr := c.Addr()
	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("started twice")
	}
	if err := c.APIServer().Stop(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.APIServer().Kill()
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Addr() != addr {
		t.Errorf("moved from %s to %s", addr, c.Addr())
	}
	if _, err := c.Client().CoreV1().Nodes().Get(t.Context(), "edge-1", metav1.GetOptions{}); err != nil {
		t.Errorf("after restarts: %v", err)
	}
	if u, err := c.APIServer().Usage(); err != nil || u.RSSAnon < 50<<20 {
		t.Errorf("usage %+v, %v", u, err)
	}
}

// testRestore brings a state back, and sees that versions are used a second time.
func testRestore(t *testing.T, c *Cloud) {
	maps := c.Client().CoreV1().ConfigMaps("default")
	create := func(name string) uint64 {
		t.Helper()
		m, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	kept := create("kept")
	b, err := c.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lost uint64
	for i := range 20 {
		lost = create(fmt.Sprint("lost-", i))
	}
	if _, err := c.Restore(t.Context(), b); err == nil {
		t.Error("restored under a running apiserver")
	}
	c.APIServer().Kill()
	revision, err := c.Restore(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if revision < kept || revision >= lost {
		t.Errorf("restored at revision %d: want from %d to %d", revision, kept, lost-1)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if strings.HasPrefix(m.Name, "lost-") {
			t.Errorf("%s is still there", m.Name)
		}
	}
	if _, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAnAPIServerThatFailsSaysWhy(t *testing.T) {
	s := proctest.Spawner(t)
	path := t.TempDir() + "/kube-apiserver"
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'error: unknown flag'; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Spawner: s, Binaries: Binaries{KubeAPIServer: path}, LogDir: t.TempDir()})
	if err == nil ||
		!strings.Contains(err.Error(),
			"kube-apiserver ended before it was ready: kube-apiserver: exit status 1\n  error: unknown flag") {
		t.Errorf("got %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	s := proctest.Spawner(t)
	good := Config{Spawner: s, Binaries: Binaries{KubeAPIServer: "x"}, LogDir: "y"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for i, spoil := range []func(*Config){
		func(c *Config) { c.Spawner = nil },
		func(c *Config) { c.Binaries = nil },
		func(c *Config) { c.LogDir = "" },
		func(c *Config) { c.Address = "localhost" },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(); err == nil {
			t.Error(fmt.Sprint(i), "was taken")
		}
	}
}
