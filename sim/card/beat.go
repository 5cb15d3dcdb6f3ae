package card

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/runtime"
)

// connect makes the clients of each pool's first node: an application, and its kubelet.
func (b *bench) connect(ctx context.Context) error {
	token, err := b.site.Token(ctx, "json-client")
	if err != nil {
		return err
	}
	for _, s := range b.sides {
		s.doors = nil
		for i, node := range s.nodes {
			door, err := b.site.Endpoint(node, "node")
			if err != nil {
				return err
			}
			client, err := rest.HTTPClientFor(door.RESTConfig(token))
			if err != nil {
				return err
			}
			s.doors = append(s.doors, nodeDoor{node, door.URL, client})
			if i > 0 {
				continue
			}
			pair, err := b.cloud.KubeletCertificate(node, 0)
			if err != nil {
				return err
			}
			trust := door.Trust()
			trust.CertData, trust.KeyData = pair.CertPEM, pair.KeyPEM
			if s.kube, err = kubernetes.NewForConfig(&rest.Config{
				Host: door.URL, TLSClientConfig: trust, Timeout: 20 * time.Second, QPS: -1,
				ContentConfig: rest.ContentConfig{
					ContentType: apiruntime.ContentTypeProtobuf, AcceptContentTypes: apiruntime.ContentTypeProtobuf,
				},
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// heartbeats renews Leases of nodes through hubs, one after the other, and counts each.
func (b *bench) heartbeats(ctx context.Context) error {
	var leases [3]*coordinationv1.Lease
	// a time of which each digit is written.
	seconds, zero := int32(40), metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC))
	for i, s := range b.sides {
		var err error
		l := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: s.nodes[0]},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &s.nodes[0], LeaseDurationSeconds: &seconds, RenewTime: &zero},
		}
		if leases[i], err = s.kube.CoordinationV1().Leases(l.Namespace).Create(ctx, l, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("%s: create the Lease of a node: %w", s.name, err)
		}
	}
	for n := range beats {
		at := metav1.NewMicroTime(zero.Add(time.Duration(n+1) * time.Second))
		for i, s := range b.sides {
			up := b.site.Link(s.name)
			before := crossed(up, runtime.ClassHeartbeat, s.nodes[0])
			leases[i].Spec.RenewTime = &at
			var err error
			if leases[i], err = s.kube.CoordinationV1().Leases(contract.NodeLeaseNamespace).Update(ctx, leases[i],
				metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("%s: renew the Lease of a node: %w", s.name, err)
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil { // what the transports say to each other afterwards
				return err
			}
			b.book.add(meaning{"heartbeat", "bytes of one renewal of a node's Lease, both ways", "B", change.Bytes}, i, 0,
				crossed(up, runtime.ClassHeartbeat, s.nodes[0])-before)
		}
	}
	return nil
}
