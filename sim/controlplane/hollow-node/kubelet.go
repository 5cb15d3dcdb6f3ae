package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	internalapi "k8s.io/cri-api/pkg/apis"
	remote "k8s.io/cri-client/pkg"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	probetest "k8s.io/kubernetes/pkg/kubelet/prober/testing"
	"k8s.io/kubernetes/pkg/kubemark"
)

const (
	runtimePatience   = 15 * time.Second
	runtimeRetry      = 100 * time.Millisecond
	heartbeatPatience = 10 * time.Second
)

// kubeletFlags are those of hollow-node kubelet; the defaults of periods are stock Kubernetes's.
type kubeletFlags struct {
	name, kubeconfig, endpoint, dir, labels, health string
	pods                                            int
	lease, status                                   time.Duration
}

func runKubelet(ctx context.Context, args []string) error {
	var f kubeletFlags
	fs := flag.NewFlagSet("hollow-node kubelet", flag.ContinueOnError)
	fs.StringVar(&f.name, "name", "", "of the node")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "file that names the server and holds the node's credential")
	fs.StringVar(&f.endpoint, "endpoint", "", "socket of hollow-node runtime: unix:///…")
	fs.StringVar(&f.dir, "root-dir", "", "folder of what the kubelet keeps")
	fs.StringVar(&f.labels, "labels", "", "of the Node: key=value,…")
	fs.StringVar(&f.health, "health-address", "", "host:port of /healthz")
	fs.IntVar(&f.pods, "max-pods", 110, "that the node takes")
	fs.DurationVar(&f.lease, "lease-duration", 40*time.Second,
		"of the node's Lease, which is renewed four times as often; whole seconds")
	fs.DurationVar(&f.status, "status-period", 10*time.Second, "between two looks whether the Node's status changed")
	if err := parse(fs, args, "name", "kubeconfig", "endpoint", "root-dir", "health-address"); err != nil {
		return err
	}
	h, err := f.build(ctx)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.health)
	if err != nil {
		return fmt.Errorf("listen for health: %w", err)
	}
	go h.Run(ctx) // has no end: this process does
	server := &http.Server{
		ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("ok\n"))
		}),
	}
	go func() { _ = server.Serve(l) }()
	<-ctx.Done()
	return nil
}

func (f kubeletFlags) build(ctx context.Context) (*kubemark.HollowKubelet, error) {
	labels, err := parseLabels(f.labels)
	if err != nil {
		return nil, err
	}
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: f.name, MaxPods: f.pods, NodeLabels: labels,
	})
	if err := f.moveTo(flags, config); err != nil {
		return nil, err
	}
	config.EnableServer = false // nobody asks for logs, and it would listen on every address
	config.ContainerRuntimeEndpoint, config.ImageServiceEndpoint = f.endpoint, f.endpoint
	config.NodeLeaseDurationSeconds = int32(f.lease / time.Second)
	config.NodeStatusUpdateFrequency = metav1.Duration{Duration: f.status}

	base, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	base.UserAgent = "hollow-kubelet"
	base.ContentType = "application/vnd.kubernetes.protobuf"
	base.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	base.QPS, base.Burst = float32(config.KubeAPIQPS), int(config.KubeAPIBurst)
	client, err := kubernetes.NewForConfig(base)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	heartbeats, err := kubernetes.NewForConfig(heartbeatConfig(base))
	if err != nil {
		return nil, fmt.Errorf("create client of heartbeats: %w", err)
	}
	containers, err := f.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the runtime: %w", err)
	}
	images, err := remote.NewRemoteImageServiceBuilder().WithEndpoint(f.endpoint).WithConnectionTimeout(runtimePatience).
		Build(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the runtime's images: %w", err)
	}
	h := kubemark.NewHollowKubelet(flags, config, client, heartbeats,
		&cadvisortest.Fake{NodeName: f.name}, images, containers, cm.NewStubContainerManager())
	h.KubeletDeps.ProbeManager = prober{}
	return h, nil
}

// prober is kubemark's, but for a container that does not run: that is not ready.
type prober struct{ probetest.FakeManager }

// UpdatePodStatus implements prober.Manager.
func (prober) UpdatePodStatus(_ context.Context, _ *corev1.Pod, status *corev1.PodStatus) {
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = status.ContainerStatuses[i].State.Running != nil
	}
}

// moveTo has the kubelet keep its files in its own folder, not in the one below /tmp that kubemark has just made.
func (f kubeletFlags) moveTo(flags *options.KubeletFlags, config *kubeletconfig.KubeletConfiguration) error {
	if err := os.RemoveAll(flags.RootDirectory); err != nil {
		return fmt.Errorf("remove kubemark's folder: %w", err)
	}
	flags.RootDirectory = f.dir
	config.StaticPodPath, config.PodLogsDir = filepath.Join(f.dir, "static-pods"), filepath.Join(f.dir, "pod-logs")
	for _, dir := range []string{config.StaticPodPath, config.PodLogsDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the kubelet's folders: %w", err)
		}
	}
	return nil
}

// connect waits for the runtime, which may start beside.
func (f kubeletFlags) connect(ctx context.Context) (internalapi.RuntimeService, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	for {
		containers, err := remote.NewRemoteRuntimeServiceBuilder().WithEndpoint(f.endpoint).WithConnectionTimeout(
			runtimePatience).Build(ctx)
		if err == nil {
			return containers, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(runtimeRetry):
		}
	}
}

// heartbeatConfig is as the kubelet has it: a client of its own, without a limit, that waits for a status period of 10
// s. That stays so with shorter periods: links are not faster than they are, and a hub takes up to 5 s before it
// answers in the place of the cloud.
func heartbeatConfig(base *rest.Config) *rest.Config {
	c := rest.CopyConfig(base)
	c.QPS = -1
	c.Timeout = heartbeatPatience
	return c
}

func parseLabels(s string) (map[string]string, error) {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(pair, "=")
		switch {
		case pair == "":
		case !ok:
			return nil, fmt.Errorf("--labels %q: want key=value,…", s)
		default:
			labels[key] = value
		}
	}
	return labels, nil
}
