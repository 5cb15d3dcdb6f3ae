package runtime

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// pulseSoon is when a heartbeat that failed is tried again.
const pulseSoon = time.Second

// pulse says that Nodes are alive which have no kubelet: it renews their Leases as kubelets would, through their hubs
// and with their certificates.
type pulse struct {
	stop context.CancelFunc
	all  sync.WaitGroup
}

func newPulse() (*pulse, context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	return &pulse{stop: cancel}, ctx
}

// close ends it.
func (p *pulse) close() {
	p.stop()
	p.all.Wait()
}

// beat renews the Lease of a node until ctx ends. The configuration may name files that are not there yet.
func (p *pulse) beat(ctx context.Context, config *rest.Config, node string, life time.Duration) {
	p.all.Go(func() {
		var api kubernetes.Interface
		for {
			wait := life / 4
			if !renew(ctx, config, &api, node, life) {
				wait = pulseSoon
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
	})
}

// renew reports whether the Lease was renewed.
func renew(ctx context.Context, config *rest.Config, api *kubernetes.Interface, node string, life time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, life/4)
	defer cancel()
	if *api == nil {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return false
		}
		*api = client
	}
	leases := (*api).CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	if err == nil {
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err == nil
	}
	if !apierrors.IsNotFound(err) {
		return false
	}
	_, err = leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: corev1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(node), LeaseDurationSeconds: ptr.To(int32(life / time.Second)),
			RenewTime: ptr.To(metav1.NowMicro()),
		},
	}, metav1.CreateOptions{})
	return err == nil
}
