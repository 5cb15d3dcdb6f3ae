package offlinetest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/revocation"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/loopback"
	"github.com/weir-edge/weir/sim/proc/proctest"
	"github.com/weir-edge/weir/sim/testca"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(floodEnv); arg != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if err := floodMain(ctx, arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	edge           = "edge-1"
	endpointSlices = "endpointslices.v1.discovery.k8s.io"
)

// bed is a real control plane, a link, and a hub behind it.
type bed struct {
	t       testing.TB
	cloud   *cloud.Cloud
	admin   kubernetes.Interface
	link    *link.Pool
	hub     *parts.Part
	url     string
	ca      []byte // of its node, as the hub shows it
	dir     string
	kubectl string
	cert    *testca.Pair // the kubelet's
	find    finder
}

// found is the hub as it is.
func found(ctx context.Context, s *proc.Spawner, say func(string), commands ...string) (parts.Binaries, error) {
	return parts.Find(ctx, s, nil, say, commands...)
}

// finder finds or builds commands.
type finder func(context.Context, *proc.Spawner, func(string), ...string) (parts.Binaries, error)

func newBed(t testing.TB, flags parts.Flags) *bed {
	t.Helper()
	return newBedWith(t, flags, found)
}

// newBedWith is newBed with commands of the hub that somebody else finds, and further flags of the kube-apiserver.
func newBedWith(t testing.TB, flags parts.Flags, find finder, args ...string) *bed {
	t.Helper()
	c, binaries := cloudtest.StartWith(t, args, cloud.Kubectl)
	b := &bed{t: t, cloud: c, dir: t.TempDir(), kubectl: binaries[cloud.Kubectl], find: find}
	config := c.RESTConfig()
	config.QPS = -1
	var err error
	b.admin, err = kubernetes.NewForConfig(config)
	check(t, err)
	check(t, c.CreateNodes(t.Context(), cloud.Node{Name: edge, Pool: "pool-a", Address: "10.0.0.1"}))
	b.cert, err = c.KubeletCertificate(edge, 0)
	check(t, err)
	b.link, err = link.NewPool(link.Config{Name: "pool-a"})
	check(t, err)
	t.Cleanup(b.link.Close)
	b.newHub(flags)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return b
}

func (b *bed) newHub(flags parts.Flags) {
	t := b.t
	s := proctest.Spawner(t)
	commands, err := b.find(t.Context(), s, func(m string) { t.Log(m) }, parts.HubCommand)
	check(t, err)
	block, err := loopback.Reserve(t.Context())
	check(t, err)
	t.Cleanup(block.Release)
	address, err := block.Addr(1)
	check(t, err)
	host, _, err := net.SplitHostPort(b.cloud.Addr()) // of its certificate
	check(t, err)
	door, err := b.link.Proxy(edge, "node", net.JoinHostPort(host, "0"), b.cloud.Addr())
	check(t, err)
	c := parts.HubConfig{
		NodeName: edge, NodePool: "pool-a", CloudServers: []string{"https://" + door.Addr()},
		DataDir:     filepath.Join(b.dir, "data"),
		BindAddress: address, SecurePort: contract.HubSecurePort,
		Health:   net.JoinHostPort(address, strconv.Itoa(contract.HubHealthPort)),
		LogLevel: "debug",
		Flags: parts.Flags{
			"heartbeat-interval": "1s", "heartbeat-timeout": "1s", "heartbeat-failed-retry": 3, "heartbeat-healthy-threshold": 1,
		},
	}
	for name, value := range flags {
		if name == "log-level" {
			c.LogLevel = fmt.Sprint(value)
			continue
		}
		c.Flags[name] = value
	}
	c.ClientCAFile, err = testca.WriteFile(b.dir, parts.CloudCAFile, b.cloud.CA().CertPEM())
	check(t, err)
	pair, err := b.cloud.KubeletCertificate(edge, 0)
	check(t, err)
	c.CloudClientCert, err = testca.WriteBoth(b.dir, "cloud.pem", pair)
	check(t, err)
	own, err := b.cloud.HubCertificate("pool-a", edge, 0)
	check(t, err)
	check(t, testca.Keep(filepath.Join(c.DataDir, "pki"), weirpki.HubAtCloud, own))
	check(t, b.cloud.GrantHubs(t.Context(), "pool-a", edge))
	_, err = b.admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
		revocation.Binding(revocation.TopologyRole, "pool-a", []string{edge}), metav1.CreateOptions{})
	check(t, err)
	log := filepath.Join(b.dir, "hub.log")
	b.hub, err = parts.NewHub(parts.Launch{
		Spawner: s, Name: "hub of " + edge, Path: commands[parts.HubCommand], Dir: b.dir, LogFile: log, Data: c.DataDir,
	}, c)
	check(t, err)
	b.url = "https://" + net.JoinHostPort(address, fmt.Sprint(contract.HubSecurePort))
	t.Cleanup(func() {
		if t.Failed() {
			data, _ := os.ReadFile(log)
			lines := strings.Split(string(data), "\n")
			t.Logf("the hub said:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	})
	check(t, b.hub.Start(t.Context()))
	b.ca, err = os.ReadFile(filepath.Join(b.dir, parts.NodeAuthorityFile))
	check(t, err)
}

// kubelet is the way of the node's own clients to the hub.
func (b *bed) kubelet(agent, contentType string) *rest.Config {
	b.t.Helper()
	return &rest.Config{
		Host: b.url, UserAgent: agent, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType + ",application/json"},
		// files, client-go would follow for ever.
		TLSClientConfig: rest.TLSClientConfig{CAData: b.ca, CertData: b.cert.CertPEM, KeyData: b.cert.KeyPEM},
	}
}

// httpClient is a bare client with the kubelet's certificate.
func (b *bed) httpClient() *http.Client {
	cert, err := b.cert.TLS()
	check(b.t, err)
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: b.ca}})
	check(b.t, err)
	config.Certificates = []tls.Certificate{cert}
	tr := &http.Transport{TLSClientConfig: config}
	b.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// run runs kubectl as the node.
func (b *bed) run(args ...string) (string, error) {
	b.t.Helper()
	cert, key, err := b.cert.Write(b.dir, "kubelet")
	check(b.t, err)
	ca, err := testca.WriteFile(b.dir, "hub-ca.crt", b.ca)
	check(b.t, err)
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.kubectl, append([]string{
		"--kubeconfig=/dev/null", "--cache-dir=" + filepath.Join(b.dir, "kube-cache"), "--server=" + b.url,
		"--certificate-authority=" + ca,
		"--client-certificate=" + cert, "--client-key=" + key,
	}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// metric is the sum of a metric of the hub.
func (b *bed) metric(name string, labels ...string) float64 {
	m, err := b.hub.Metrics(b.t.Context())
	if err != nil {
		return -1
	}
	return m.Sum(name, labels...)
}

// unread has the hub relay EndpointSlices, though no client watches all of them.
func unread() parts.Flags {
	all := directory.DefaultScope()
	all[slices.Index(all, endpointSlices)] = "+" + endpointSlices
	return parts.Flags{"pool-scope-resources": all}
}

// kept waits until as many collections of clients are on the disk, and what the hub relays. The hub has one of its own,
// of tokens.
func (b *bed) kept(n int) {
	eventually(b.t, "the store to have all", func() bool {
		return b.metric("weir_store_complete_collections") >= float64(n+1)
	})
	b.written()
}

// written waits until nothing would be lost by a kill -9.
func (b *bed) written() {
	eventually(b.t, "all to be written", func() bool {
		for _, r := range directory.DefaultScope() {
			objects := b.metric("weir_relay_objects", "resource", r)
			if objects > 0 && b.metric("weir_snapshot_resource_version", "resource", r) == 0 {
				return false
			}
		}
		return b.metric("weir_store_pending_bytes") == 0 && b.metric("weir_hub_authorization_unsaved") == 0
	})
}

// cut cuts the link, and waits until the hub knows.
func (b *bed) cut() {
	b.link.Cut(link.Both, "")
	eventually(b.t, "the hub to see that the cloud is away",
		func() bool { return b.metric("weir_hub_cloud_server_healthy") == 0 })
}

func (b *bed) heal() {
	b.link.Heal(link.Both, "")
	eventually(b.t, "the hub to see that the cloud is back",
		func() bool { return b.metric("weir_hub_cloud_server_healthy") == 1 })
}

// restart kills the hub (kill -9) and starts it again.
func (b *bed) restart() {
	check(b.t, b.hub.Kill())
	check(b.t, b.hub.Start(b.t.Context()))
}

// fill makes what a node has: pods with a Secret and a ConfigMap each, and further ones that the first pod refers to.
func (b *bed) fill(pods, files int) {
	t, ctx := b.t, b.t.Context()
	core := b.admin.CoreV1()
	eventually(t, "the service account", func() bool {
		_, err := core.ServiceAccounts("default").Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		if err == nil {
			return true
		}
		_, err = core.ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	text := strings.Repeat("0123456789abcdef", 256) // 4 kB
	for i := range files {
		name := fmt.Sprintf("file-%03d", i)
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"parity": fmt.Sprint(i % 2)}}
		if i%2 == 0 {
			_, err := core.Secrets("default").Create(ctx, &corev1.Secret{
				ObjectMeta: meta, StringData: map[string]string{"key": text},
			}, metav1.CreateOptions{})
			check(t, err)
		} else {
			_, err := core.ConfigMaps("default").Create(ctx,
				&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": text}}, metav1.CreateOptions{})
			check(t, err)
		}
	}
	for i := range pods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("pod-%02d", i), Labels: map[string]string{"parity": fmt.Sprint(i % 2)},
			},
			Spec: corev1.PodSpec{
				NodeName: edge, AutomountServiceAccountToken: new(bool),
				Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}},
			},
		}
		for j := i; j < files; j += pods {
			name := fmt.Sprintf("file-%03d", j)
			v := corev1.Volume{
				Name: name, VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
				},
			}
			if j%2 == 0 {
				v.VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
			}
			pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		}
		_, err := core.Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		check(t, err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Until(t, 90*time.Second, what, cond)
}
