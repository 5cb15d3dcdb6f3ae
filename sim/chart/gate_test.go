package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/gate"
)

// TestGate switches weir-gate on, upgrades and switches it off. It runs with its grants and its certificate. The latter
// stays through an upgrade, is another one for another host, and goes with the gate. Who may reach into pools is who
// the values name, while the way in is there.
func TestGate(t *testing.T) {
	h, c := findHelm(t), newCluster(t)
	h.kubeconfig = c.admin(t)
	helm := func(args ...string) {
		t.Helper()
		if out, err := h.run(t.Context(), append(args, "--namespace", namespace)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	certificate := func() map[string][]byte {
		t.Helper()
		s, err := c.client.CoreV1().Secrets(contract.ManagerNamespace).Get(t.Context(), "weir-gate-tls", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if names := slices.Sorted(maps.Keys(s.Data)); !slices.Equal(names, []string{"ca.crt", "tls.crt", "tls.key"}) {
			t.Errorf("the Secret has %v", names)
		}
		return s.Data
	}
	same := func(a, b map[string][]byte) bool { return string(a["tls.key"]) == string(b["tls.key"]) }
	told := func(want, flags int) {
		t.Helper()
		d, err := c.client.AppsV1().Deployments(contract.ManagerNamespace).Get(t.Context(), "weir-manager",
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		if n := strings.Count(strings.Join(pod.Containers[0].Args, " "), "--gate"); n != flags || len(pod.Volumes) != want ||
			len(pod.Containers[0].VolumeMounts) != want {
			t.Errorf("weir-manager has %v, %v", pod.Containers[0].Args, pod.Volumes)
		}
	}
	may := func(want string) { // where a monitoring system may connect: into pools, and nowhere else
		t.Helper()
		eventually(t, func() string {
			var may []string
			for _, path := range []string{contract.ConnectPath, contract.StraightPath} {
				if c.may(t, "system:serviceaccount:monitoring:prometheus", "connect", path) {
					may = append(may, path)
				}
			}
			if is := strings.Join(may, " "); is != want {
				return fmt.Sprintf("it may connect at %q, and not at %q", want, is)
			}
			return ""
		})
	}
	const upgrade, keep = "upgrade", "--reset-then-reuse-values"
	helm("install", release, h.chart, "--create-namespace")
	told(0, 0)
	helm(upgrade, release, h.chart, keep, "--set", "gate.enabled=true,gate.address=127.0.0.1:30273")
	first := certificate()
	told(1, 2)
	c.gate(t, first)
	helm(upgrade, release, h.chart, keep, "--set", "gate.replicas=3,gate.address=127.0.0.1:30274")
	if !same(first, certificate()) {
		t.Error("an upgrade makes another certificate for the same host")
	}
	helm(upgrade, release, h.chart, keep, "--set", "gate.address=gate.example:30273,gate.wayIn.enabled=true", "--set-json",
		`gate.wayIn.connect=[{"kind":"ServiceAccount","namespace":"monitoring","name":"prometheus"}]`)
	told(1, 3)
	may(contract.ConnectPath)
	if same(first, certificate()) {
		t.Error("another host has the certificate of before")
	}
	helm(upgrade, release, h.chart, keep, "--set", "gate.enabled=false")
	told(0, 0)
	may("")
	for name := range c.everything(t) {
		if strings.Contains(name, "weir-gate") || strings.Contains(name, "weir:gate") {
			t.Errorf("it is off, and left %s", name)
		}
	}
	if _, err := c.client.CoreV1().Secrets(contract.ManagerNamespace).Get(t.Context(), "weir-gate-tls",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its key is still there: %v", err)
	}
}

// may reports whether a user may do something that is no resource.
func (c *cluster) may(t *testing.T, user, verb, path string) bool {
	t.Helper()
	r, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Allowed
}

// gate runs weir-gate as its account, with what the Secret has, until it is ready.
func (c *cluster) gate(t *testing.T, secret map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range secret {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const space = contract.ManagerNamespace
	g, err := gate.New(gate.Config{
		Kubeconfig: c.account(t, "system:serviceaccount:"+space+":weir-gate", "system:serviceaccounts",
			"system:serviceaccounts:"+space, "system:authenticated"),
		BindAddress: "127.0.0.1",
		TLSCertFile: filepath.Join(dir, "tls.crt"), TLSPrivateKeyFile: filepath.Join(dir, "tls.key"),
		PoolScopeResources: directory.DefaultScope(), RingBytes: 1 << 20, FreshWithin: 30 * time.Second, WayIn: true,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("weir-gate: %v", err)
		}
	}()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret["ca.crt"])
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	eventually(t, func() string { // linger is 0: all that it may serve has to be read
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s/readyz", g.Addr()), http.NoBody)
		if err != nil {
			return err.Error()
		}
		resp, err := client.Do(req)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return "weir-gate is ready: " + resp.Status
		}
		return ""
	})
}
