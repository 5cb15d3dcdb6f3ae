// Command cni-agent connects the pods of the nodes of a kind cluster, in the place of kindnetd where that image cannot
// be pulled: on each node it writes the CNI configuration for the node's pod range, keeps one route to the pod range of
// every other node, and masquerades what leaves the pod network.
//
// It reads the manifest's variables that kindnetd reads (HOST_IP, POD_SUBNET, CONTROL_PLANE_ENDPOINT), so kind's own
// manifest starts it. IPv4 only; NetworkPolicies are not enforced.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// repair is how often routes and rules are looked at although no node changed: someone may have removed them.
const repair = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("cni-agent", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	agent, err := newAgent(os.Getenv("HOST_IP"), os.Getenv("POD_SUBNET"))
	if err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	// kind names the control plane itself, so that the pod network does not wait for kube-proxy.
	if endpoint := os.Getenv("CONTROL_PLANE_ENDPOINT"); endpoint != "" {
		config.Host = "https://" + endpoint
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	return watch(ctx, client, agent)
}

// watch applies the nodes to the agent at every change and every repair interval until ctx ends.
func watch(ctx context.Context, client kubernetes.Interface, agent *agent) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}); err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), nodes.Informer().HasSynced) {
		return nil // ctx ended
	}
	tick := time.NewTicker(repair)
	defer tick.Stop()
	for {
		list, err := nodes.Lister().List(labels.Everything())
		if err == nil {
			err = agent.apply(list)
		}
		if err != nil {
			slog.Warn("pod network is not as it should be; trying again", "err", err)
			time.AfterFunc(time.Second, notify)
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
