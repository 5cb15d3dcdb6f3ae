// Package stock runs package lifecycle with the unmodified controllers of Kubernetes that hold nodes for lost and evict
// pods. It is a module of its own, because k8s.io/kubernetes must not be one of Weir's dependencies; and not that of
// sim/controlplane, because the binaries built there are cached by that module's files.
package stock

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
)

// The defaults of kube-controller-manager 1.37.
const (
	monitorPeriod  = 5 * time.Second
	startupGrace   = time.Minute
	monitorGrace   = 50 * time.Second
	evictionRate   = 0.1
	secondaryRate  = 0.01
	largeCluster   = 50
	unhealthyShare = 0.55
)

// Controllers runs both, as kube-controller-manager does, until the context ends.
func Controllers(ctx context.Context, as *rest.Config) error {
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	lifecycle, err := nodelifecycle.NewNodeLifecycleController(ctx, factory.Coordination().V1().Leases(),
		factory.Core().V1().Pods(), factory.Core().V1().Nodes(),
		factory.Apps().V1().DaemonSets(), client, monitorPeriod, startupGrace, monitorGrace, evictionRate, secondaryRate,
		largeCluster, unhealthyShare)
	if err != nil {
		return err
	}
	eviction, err := tainteviction.New(ctx, client, factory.Core().V1().Pods(), factory.Core().V1().Nodes(),
		"taint-eviction-controller")
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	factory.Start(ctx.Done())
	for _, run := range []func(context.Context){lifecycle.Run, eviction.Run} {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
	factory.Shutdown()
	return nil
}
