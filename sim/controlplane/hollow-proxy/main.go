// Command hollow-proxy is the kube-proxy of a node whose kernel is not there: the real kube-proxy's server, its
// informers and its trackers of Services and EndpointSlices, over a table in the place of rules in the kernel. Who would
// send a packet to a Service asks the table instead:
//
//	GET /healthz
//	GET /route?to=10.96.0.10:53/UDP   the endpoints that rules would lead to, as JSON; none: rules would refuse
//
// The table answers 404 for what no Service has, and 503 until kube-proxy has read Services and EndpointSlices.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	proxyapp "k8s.io/kubernetes/cmd/kube-proxy/app"
	"k8s.io/kubernetes/pkg/proxy"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
)

// configSync is how often kube-proxy's informers show all objects again, by default.
const configSync = 15 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hollow-proxy:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context, args []string) error {
	var name, kubeconfig, address string
	fs := flag.NewFlagSet("hollow-proxy", flag.ContinueOnError)
	fs.StringVar(&name, "name", "", "of the node")
	fs.StringVar(&kubeconfig, "kubeconfig", "", "file that names the server and holds kube-proxy's credential")
	fs.StringVar(&address, "address", "", "host:port of /healthz and /route")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if name == "" || kubeconfig == "" || address == "" || fs.NArg() > 0 {
		return errors.New("want --name, --kubeconfig and --address, and nothing else")
	}
	rules := newTable(name)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: rules.handler(), ReadHeaderTimeout: time.Second}
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(l) }()
	go func() { ended <- serve(ctx, name, kubeconfig, rules) }() // has no end: this process does
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// serve is what the command kube-proxy does with a proxier that it has made.
func serve(ctx context.Context, name, kubeconfig string, rules proxy.Provider) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.ContentType, config.UserAgent = "application/vnd.kubernetes.protobuf", "kube-proxy"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	settings := &proxyconfig.KubeProxyConfiguration{
		Mode: "hollow", ConfigSyncPeriod: metav1.Duration{Duration: configSync},
	}
	node, err := proxy.NewNodeManager(ctx, client, name, settings)
	if err != nil {
		return fmt.Errorf("read the own Node: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	s := &proxyapp.ProxyServer{
		Config: settings, Client: client, NodeManager: node, NodeName: name, Proxier: rules, Broadcaster: broadcaster,
		Recorder: broadcaster.NewRecorder(scheme.Scheme, "kube-proxy"),
		NodeRef:  &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name},
	}
	return s.Run(ctx)
}
