package manager

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/manager/certificates"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/revocation"
	"github.com/weir-edge/weir/impl/pki"
)

// certifier puts in what judges, signs and revokes.
type certifier struct {
	ctrl    ctrl.Manager
	set     *settings
	metrics *metrics
	gate    *manifests.Gate
	keys    cache.Cache // see open
}

// add lets the replica that leads judge requests for certificates, and take certificates back.
func (m *certifier) add() error {
	if !m.set.certifies() {
		return nil
	}
	c, r := m.ctrl.GetClient(), m.ctrl.GetAPIReader()
	revoker := revocation.New(revocation.Config{
		Client: c, Reader: r, Events: m.ctrl.GetEventRecorder("weir-manager"), Clock: m.set.Clock,
		Metrics: m.metrics.revocations, Log: m.set.Logger,
		Authority: m.authority,
	})
	if err := m.open(); err != nil {
		return err
	}
	nodes := func() source.Source { return source.Kind(m.ctrl.GetCache(), &corev1.Node{}, membership()) }
	if err := reconciles(m.ctrl, "revocation", revoker, 1, nodes(), m.bindings(),
		m.written(ignore, contract.ReturnedPrefix)); err != nil {
		return err
	}
	watchman := certificates.NewWatchman(certificates.WatchmanConfig{
		Client: c, Events: m.ctrl.GetEventRecorder("weir-manager"), Clock: m.set.Clock,
	})
	if err := reconciles(m.ctrl, "certificate-ends", watchman, 1,
		source.Kind(m.ctrl.GetCache(), &corev1.Node{}, tellers())); err != nil {
		return err
	}
	if m.set.Certificates == signCertificates {
		rotator := certificates.NewRotator(certificates.RotatorConfig{
			Client: c, Reader: r, Events: m.ctrl.GetEventRecorder("weir-manager"), Clock: m.set.Clock,
			Metrics: m.metrics.certificates, Log: m.set.Logger,
			Kept: kept(m.keys), Away: away(c), Ends: watchman.Authority, Switched: revoker.Resign,
		})
		if err := reconciles(m.ctrl, "rotation", rotator, 1, nodes(),
			m.written(ignore, contract.AuthorityPrefix, contract.ReturnedPrefix)); err != nil {
			return err
		}
	}
	if err := m.ctrl.Add(certificates.New(certificates.Config{
		Cache: m.ctrl.GetCache(), Client: c, Reader: r, Events: m.ctrl.GetEventRecorder("weir-manager"), Begin: revoker.Begin,
		Granted: revoker.Granted, Gate: m.gate,
		Clock: m.set.Clock, Sign: m.set.Certificates == signCertificates, Metrics: m.metrics.certificates,
		Log: m.set.Logger,
	})); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return nil
}

// authority is that of a pool; nil without an error: the pool has none, or another signer has the keys.
func (m *certifier) authority(ctx context.Context, pool string) (*pki.Succession, error) {
	if m.set.Certificates != signCertificates {
		return nil, nil
	}
	return certificates.Authority(ctx, m.ctrl.GetClient(), m.ctrl.GetAPIReader(), m.set.Clock, pool)
}

// open makes a cache of the ConfigMaps in contract.KeyNamespace, see trimData.
func (m *certifier) open() (err error) {
	m.keys, err = cache.New(m.set.rest, cache.Options{
		HTTPClient: m.ctrl.GetHTTPClient(), Scheme: m.ctrl.GetScheme(), Mapper: m.ctrl.GetRESTMapper(),
		NewInformer: informer(m.set.Clock), ReaderFailOnMissingInformer: true,
		DefaultNamespaces: map[string]cache.Config{contract.KeyNamespace: {}}, DefaultTransform: trimData,
	})
	if err != nil {
		return fmt.Errorf("cache of namespace %s: %w", contract.KeyNamespace, err)
	}
	if err := m.ctrl.Add(m.keys); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return nil
}

func ignore(string) {}

// written asks for the pools of which somebody writes a ConfigMap whose name has one of the prefixes: `weir pki rotate`
// does, and hubs that give something back. It calls changed before.
func (m *certifier) written(changed func(pool string), prefixes ...string) source.Source {
	kind := source.Kind(m.keys, &corev1.ConfigMap{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o *corev1.ConfigMap) []reconcile.Request {
			for _, prefix := range prefixes {
				if pool, ours := strings.CutPrefix(o.Name, prefix); ours {
					changed(pool)
					return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: pool}}}
				}
			}
			return nil
		}))
	return m.granted("ConfigMaps in namespace "+contract.KeyNamespace,
		manifests.Listed(m.ctrl.GetAPIReader(), &corev1.ConfigMapList{}, client.InNamespace(contract.KeyNamespace)), kind)
}

// kept reports false when the cache knows that a pool has no ConfigMap of its authority. A write of one asks for a
// look by that, see written.
func kept(keys client.Reader) func(ctx context.Context, pool string) bool {
	return func(ctx context.Context, pool string) bool {
		key := types.NamespacedName{Namespace: contract.KeyNamespace, Name: contract.AuthorityPrefix + pool}
		return !apierrors.IsNotFound(keys.Get(ctx, key, &corev1.ConfigMap{}))
	}
}

// away tells which nodes of a pool have not told that they hold a trust bundle.
func away(c client.Reader) func(ctx context.Context, pool string, number uint64) ([]string, error) {
	return func(ctx context.Context, pool string, number uint64) (names []string, err error) {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: pool}); err != nil {
			return nil, err
		}
		for _, n := range nodes.Items {
			if h, err := digest.ParseHolding(n.Annotations[contract.HoldsAnnotation]); err != nil || h.Trust < number {
				names = append(names, n.Name)
			}
		}
		return names, nil
	}
}

// tellers asks for the Nodes of which another thing is known about their certificates.
func tellers() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	ask := func(q queue, n *corev1.Node) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: n.Name}})
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) { ask(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			if is, was := e.ObjectNew, e.ObjectOld; holds(is) != holds(was) || is.UID != was.UID ||
				is.Labels[contract.NodePoolLabel] != was.Labels[contract.NodePoolLabel] {
				ask(q, is)
			}
		},
	}
}

// bindings asks for the pools whose binding there is, or changes: of some all nodes were deleted while no manager ran.
// A cluster whose manifests are older does not grant this watch, and must not lose the rest of weir-manager.
func (m *certifier) bindings() source.Source {
	kind := source.Kind(m.ctrl.GetCache(), &rbacv1.ClusterRoleBinding{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, b *rbacv1.ClusterRoleBinding) []reconcile.Request {
			if pool := revocation.PoolOf(b.Name); pool != "" {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: pool}}}
			}
			return nil
		}))
	return m.granted("bindings of hubs", manifests.Listed(m.ctrl.GetAPIReader(), &rbacv1.ClusterRoleBindingList{}), kind)
}

// granted is a source that begins when the cluster grants what it reads.
func (m *certifier) granted(what string, check func(context.Context) error, s source.Source) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		go func() {
			if !m.gate.Granted(ctx, what, check) {
				return
			}
			if err := s.Start(ctx, q); err != nil && ctx.Err() == nil {
				m.set.Logger.Error("a watch cannot be begun", "what", what, "err", err)
			}
		}()
		return nil
	})
}

// trimBinding leaves the name of a ClusterRoleBinding, by which pools are known, and its version.
func trimBinding(o any) (any, error) {
	if b, ok := o.(*rbacv1.ClusterRoleBinding); ok {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion},
		}, nil
	}
	return o, nil
}
