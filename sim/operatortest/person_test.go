package operatortest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator"
	"github.com/weir-edge/weir/impl/operator"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/testca"
)

// said is what a command prints that asks no cluster.
func said(t *testing.T, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	must(t, operator.Commands("weir").Run(t.Context(), args, &out, &out))
	return out.Bytes()
}

// as is a client of the cluster, as somebody.
func (d *desk) as(user string, groups ...string) kubernetes.Interface {
	d.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig)
	must(d.t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := kubernetes.NewForConfig(config)
	must(d.t, err)
	return c
}

// certified has weir-manager sign what weir pki request prints.
func (d *desk) certified(node string, args ...string) []byte {
	d.t.Helper()
	var r certificatesv1.CertificateSigningRequest
	must(d.t,
		yaml.UnmarshalStrict(
			said(d.t, append([]string{"pki", "request", "--manifest=" + node, "--node=" + node}, args...)...), &r))
	asked := d.as(contract.NodeUserPrefix+node, contract.NodesGroup, "system:authenticated").CertificatesV1().
		CertificateSigningRequests()
	_, err := asked.Create(d.t.Context(), &r, metav1.CreateOptions{})
	must(d.t, err)
	var signed []byte
	testkit.Until(d.t, time.Minute, "weir-manager to sign", func() bool {
		got, err := asked.Get(d.t.Context(), node, metav1.GetOptions{})
		must(d.t, err)
		signed = got.Status.Certificate
		return len(signed) > 0
	})
	return signed
}

// coordinate runs a real coordinator of a pool, and returns where it is.
func (d *desk) coordinate(pool string) string {
	d.t.Helper()
	ctx, dir := d.t.Context(), d.t.TempDir()
	must(d.t, d.cloud.CreateNodes(ctx, cloud.Node{Name: "edge-3", Pool: pool, Address: "127.10.0.1"}))
	label := []byte(`{"metadata":{"labels":{"` + contract.CoordinatorLabel + `":"one"}}}`)
	_, err := d.cloud.Client().CoreV1().Nodes().Patch(ctx, "edge-3", types.MergePatchType, label, metav1.PatchOptions{})
	must(d.t, err)
	key := filepath.Join(dir, "serving.key")
	cert := d.certified("edge-3", "--kind=coordinator", "--pool="+pool, "--name=one", "--host=127.10.0.1", "--key="+key)
	keyPEM, err := os.ReadFile(key)
	must(d.t, err)
	must(d.t, testca.Keep(dir, weirpki.Coordinator, &weirpki.Pair{CertPEM: cert, KeyPEM: keyPEM}))
	told, err := d.cloud.Client().CoreV1().ConfigMaps(contract.KeyNamespace).Get(ctx, contract.AuthorityPrefix+pool,
		metav1.GetOptions{})
	must(d.t, err)
	_, err = weirpki.WriteFile(dir, "ca.crt", []byte(told.Data[contract.AuthorityKey]))
	must(d.t, err)
	c, err := coordinator.New(coordinator.Config{
		NodePoolName: pool, BindAddress: "127.10.0.1", DataDir: filepath.Join(dir, "data"), FreshWithin: 30 * time.Second,
		RingBytes: 1 << 20, RingAge: time.Minute,
		CertificatesDir: dir, Logger: slog.New(slog.DiscardHandler),
	})
	must(d.t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	d.t.Cleanup(func() { stop(); <-done })
	return "https://" + c.Addr().String()
}

// people holds that a person is let into a pool by the kubeconfig that is printed, for what they may do and no more.
func (d *desk) people() {
	d.t.Helper()
	if out, code := d.types("pool rotate quay"); code != 1 || !strings.Contains(out, "pool quay has no authority") {
		d.t.Errorf("pool rotate of no pool prints %q, %d", out, code)
	}
	server := d.coordinate("quay")
	if out, code := d.types("pool create quay --coordinator-server=" + server); code != 0 {
		d.t.Fatalf("pool create: %s", out)
	}
	dir := d.t.TempDir()
	testkit.Until(d.t, time.Minute, "the Pool to say where its coordinator is", func() bool {
		out, _ := d.types("status -o json --pool=quay")
		return strings.Contains(out, server)
	})
	may := func(text string, deletes bool) {
		d.t.Helper()
		config, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
		must(d.t, err)
		c, err := kubernetes.NewForConfig(config)
		must(d.t, err)
		leases := c.CoordinationV1().Leases(contract.LeaseNamespace)
		testkit.Until(d.t, time.Minute, "the coordinator to answer", func() bool {
			_, err = leases.List(d.t.Context(), metav1.ListOptions{})
			return err == nil
		})
		err = leases.Delete(d.t.Context(), contract.InformerSync, metav1.DeleteOptions{})
		if deletes && !apierrors.IsNotFound(err) || !deletes && !apierrors.IsForbidden(err) {
			d.t.Errorf("a Lease is deleted: %v", err)
		}
	}
	ann, eve := filepath.Join(dir, "ann.key"), filepath.Join(dir, "eve.key")
	out, code := d.types("pool kubeconfig quay --name=ann --key=" + ann)
	if code != 0 || strings.Contains(out, "PRIVATE KEY") || !strings.Contains(out, "client-key: "+ann) {
		d.t.Fatalf("pool kubeconfig: exit code %d:\n%s", code, out)
	}
	may(out, false)
	request := filepath.Join(dir, "eve.csr")
	must(d.t,
		os.WriteFile(request, said(d.t, "pki", "request", "--kind=operator", "--pool=quay", "--name=eve", "--key="+eve),
			0o600))
	if out, code = d.types("pool kubeconfig quay --kind=operator --name=eve --key=" + eve + " --request=" +
		request); code != 0 {
		d.t.Fatalf("pool kubeconfig: exit code %d:\n%s", code, out)
	}
	may(out, true)
	for args, want := range map[string]string{
		"quay --name=ann --key=" + ann + " --request=" + request:                 "--request",
		"quay --kind=operator --name=ann --key=" + ann + " --request=" + request: "common name",
		"quay --name=ann --key=" + ann + " --life=9000h":                         "--life",
		"quay --name=system:admin --key=" + ann + "2":                            "--name",
		"quay --kind=hub --name=ann --key=" + ann:                                "viewer or operator",
		"quay --name=ann":                       "--key",
		"harbour --name=ann --key=" + ann + "2": "a pool with a coordinator",
		"nowhere --name=ann --key=" + ann + "2": "the name of a Pool",
	} {
		if out, code := d.types("pool kubeconfig " + args); code != 2 || !strings.Contains(out, want) {
			d.t.Errorf("pool kubeconfig %s: exit code %d, want %q:\n%s", args, code, want, out)
		}
	}
	if _, err := os.Stat(ann + "2"); err == nil {
		d.t.Error("a key was made for nothing")
	}
	if out, code := d.types("pool rotate quay --settle=10s"); code != 0 ||
		!strings.Contains(out, "asked for a rotation") || !strings.Contains(out, "is trusted, and signs in place of") {
		d.t.Errorf("pool rotate prints %q, %d", out, code)
	}
	if out, code := d.types("pki rotate --pool=quay"); code != 1 || !strings.Contains(out, "a rotation is under way") {
		d.t.Errorf("pki rotate prints %q, %d", out, code)
	}
}
