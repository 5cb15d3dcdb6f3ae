package runtime

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/manager/revocation"
)

var ownWrites = flag.Int("own-writes", 20,
	"writes of each kind that are read back at their hub, and lifecycles, for each hub and link")

// TestOwnWrites: a client that writes through a hub reads there what it wrote, at a leader and at a follower, over a
// link without a delay and over one of 60 ms. What follows are the things that kube-apiserver's answers tell no version
// of; and the tests of Kubernetes that failed through a hub because of that.
func TestOwnWrites(t *testing.T) {
	t.Parallel()
	for name, rtt := range map[string]time.Duration{"no delay": 0, "60ms": 60 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			site, admin := ownWritesSite(t, rtt)
			leader := stateOf(t, site).Leader
			follower := fedByPool(t, site)
			for role, node := range map[string]string{"leader": leader, "follower": follower} {
				c := clientOfAdmin(t, site, admin, node)
				for what, op := range map[string]func(context.Context, *testing.T, int) error{
					"delete": c.deletes, "delete all": c.deletesAll, "status": c.status, "conflict": c.conflicts, "taken": c.taken,
					"finalizer":                    c.finalizer,
					"EndpointSlice API operations": c.slices, "ConfigMap lifecycle": c.configMaps,
				} {
					t.Run(role+" "+what, func(t *testing.T) {
						stale, began := 0, time.Now()
						for i := range *ownWrites {
							if err := op(t.Context(), t, i); err != nil {
								if stale++; stale == 1 {
									t.Errorf("try %d: %v", i, err)
								}
							}
						}
						if stale > 0 {
							t.Errorf("stale %d of %d", stale, *ownWrites)
						}
						t.Logf("stale %d of %d, %v each", stale, *ownWrites, time.Since(began)/time.Duration(*ownWrites))
					})
				}
			}
		})
	}
}

// ownWritesSite is a pool of a leader and a follower that has ConfigMaps and pods in its scope, too.
func ownWritesSite(t *testing.T, rtt time.Duration) (Site, *rest.Config) {
	t.Helper()
	pool := Pool{
		Name: "edge", Nodes: 2, Mode: Weir, Uplink: Link{RTT: rtt},
		PoolScopeResources: []string{
			"+endpoints.v1.", "+endpointslices.v1.discovery.k8s.io", "+configmaps.v1.", "+pods.v1.",
		},
	}
	site := up(t, Topology{Pools: []Pool{pool}})
	admin, err := kubernetes.NewForConfig(site.Admin())
	fine(t, err)
	ctx := t.Context()
	subjects := revocation.Binding(revocation.HubRole, pool.Name, pool.NodeNames()).Subjects
	grant(t, admin, "test:hub", &rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps", "pods"}, Verbs: []string{"get", "list", "watch"},
	}, subjects)
	for _, name := range []string{"default", "writer"} {
		_, err := admin.CoreV1().ServiceAccounts("default").Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	grant(t, admin, "test:writer", &rbacv1.PolicyRule{
		APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"},
	},
		[]rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "writer"}})
	fine(t, Start(ctx, site, site.Parts()[1:]...))
	wait(t, "a ready pool", func() bool { return stateOf(t, site).Ready })
	return site, site.Admin()
}

func grant(t *testing.T, admin kubernetes.Interface, name string, rule *rbacv1.PolicyRule, subjects []rbacv1.Subject) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{*rule}}, metav1.CreateOptions{})
	fine(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: subjects,
	}, metav1.CreateOptions{})
	fine(t, err)
}

// writer is a client of a hub that may do everything, beside the cloud's own door.
type writer struct {
	hub, cloud kubernetes.Interface
	node       string
}

func clientOfAdmin(t *testing.T, s Site, admin *rest.Config, node string) *writer {
	t.Helper()
	config := rest.CopyConfig(admin)
	config.QPS = -1
	cloud, err := kubernetes.NewForConfig(config)
	fine(t, err)
	endpoint, err := s.Endpoint(node, "writer")
	fine(t, err)
	token, err := cloud.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "writer",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	fine(t, err)
	config = endpoint.RESTConfig(token.Status.Token)
	config.QPS = -1
	hub, err := kubernetes.NewForConfig(config)
	fine(t, err)
	wait(t, "the hub to let the writer read", func() bool {
		_, err := hub.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return &writer{hub, cloud, node}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *writer) name(i int) string { return fmt.Sprintf("%s-%d", w.node, i) }

func (w *writer) configMap(i int, label string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: w.name(i), Labels: map[string]string{"test": label}},
		Data:       map[string]string{"a": "1"},
	}
}

func (w *writer) absent(ctx context.Context, name string) error {
	if _, err := w.hub.CoreV1().ConfigMaps("default").Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("get %s after its deletion: %w", name, err)
	}
	return nil
}

func (w *writer) deletes(ctx context.Context, _ *testing.T, i int) error {
	all := w.hub.CoreV1().ConfigMaps("default")
	if _, err := all.Create(ctx, w.configMap(i, "delete"), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := all.Delete(ctx, w.name(i), metav1.DeleteOptions{}); err != nil {
		return err
	}
	return w.absent(ctx, w.name(i))
}

func (w *writer) deletesAll(ctx context.Context, _ *testing.T, i int) error {
	all, own := w.hub.CoreV1().ConfigMaps("default"), metav1.ListOptions{LabelSelector: "test=all-" + w.node}
	for n := range 3 {
		if _, err := all.Create(ctx, w.configMap(10*i+n, "all-"+w.node), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, own); err != nil {
		return err
	}
	list, err := all.List(ctx, own)
	if err == nil && len(list.Items) > 0 {
		return fmt.Errorf("%d are left after all were deleted", len(list.Items))
	}
	return err
}

func (w *writer) status(ctx context.Context, t *testing.T, i int) error {
	all, name := w.hub.CoreV1().Pods("default"), "pod-"+w.node
	if i == 0 {
		_, err := all.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{
				{Name: "main", Image: "example.com/image:1"},
			},
		}}, metav1.CreateOptions{})
		fine(t, err)
	}
	message := fmt.Sprint("message ", i)
	if _, err := all.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"status":{"message":%q}}`, message),
		metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	pod, err := all.Get(ctx, name, metav1.GetOptions{})
	if err == nil && pod.Status.Message != message {
		return fmt.Errorf("the status is %q after %q was written", pod.Status.Message, message)
	}
	return err
}

// conflicts: who is told that somebody else was first then sees what that one wrote.
func (w *writer) conflicts(ctx context.Context, t *testing.T, i int) error {
	all, name := w.hub.CoreV1().ConfigMaps("default"), "conflict-"+w.node
	if i == 0 {
		o := w.configMap(0, "conflict")
		o.Name = name
		_, err := all.Create(ctx, o, metav1.CreateOptions{})
		fine(t, err)
	}
	seen, err := all.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	other, err := w.cloud.CoreV1().ConfigMaps("default").Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"other":"%d"}}`, i), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	seen.Data["mine"] = fmt.Sprint(i)
	if _, err := all.Update(ctx, seen, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an update of an old version: %w", err)
	}
	now, err := all.Get(ctx, name, metav1.GetOptions{})
	if err == nil && now.ResourceVersion != other.ResourceVersion {
		return fmt.Errorf("version %s after a conflict with %s", now.ResourceVersion, other.ResourceVersion)
	}
	return err
}

// taken: who is told that a name is taken then sees who has it.
func (w *writer) taken(ctx context.Context, _ *testing.T, i int) error {
	o := w.configMap(i, "taken")
	o.Name = "taken-" + o.Name
	if _, err := w.cloud.CoreV1().ConfigMaps("default").Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := w.hub.CoreV1().ConfigMaps("default").Create(ctx, o, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(
		err) {
		return fmt.Errorf("create what is there: %w", err)
	}
	_, err := w.hub.CoreV1().ConfigMaps("default").Get(ctx, o.Name, metav1.GetOptions{})
	return err
}

// finalizer: the write that takes the last finalizer away deletes, and its answer has the object.
func (w *writer) finalizer(ctx context.Context, _ *testing.T, i int) error {
	all, o := w.hub.CoreV1().ConfigMaps("default"), w.configMap(i, "finalizer")
	o.Name, o.Finalizers = "final-"+o.Name, []string{"example.com/hold"}
	if _, err := all.Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := all.Delete(ctx, o.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	leaving, err := all.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil || leaving.DeletionTimestamp == nil {
		return fmt.Errorf("after its deletion it is %v, %w", leaving, err)
	}
	if _, err := all.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		return err
	}
	return w.absent(ctx, o.Name)
}

// slices is "EndpointSlice should support creating EndpointSlice API operations", step by step.
func (w *writer) slices(ctx context.Context, _ *testing.T, i int) error {
	all, label := w.hub.DiscoveryV1().EndpointSlices("default"), "slices-"+w.node
	own := metav1.ListOptions{LabelSelector: "test=" + label}
	for n := range 3 {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.name(i), n), Labels: map[string]string{"test": label}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		if _, err := all.Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	name := w.name(i) + "-0"
	if _, err := all.Get(ctx, name, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if list, err := all.List(ctx, own); err != nil || len(list.Items) != 3 {
		return fmt.Errorf("list: %d of 3, %w", len(list.Items), err)
	}
	s, err := all.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"patched":"true"}}}`),
		metav1.PatchOptions{})
	if err != nil {
		return err
	}
	s.Annotations["updated"] = "true"
	if _, err = all.Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if s, err = all.Get(ctx, name, metav1.GetOptions{}); err != nil || s.Annotations["updated"] != "true" ||
		s.Annotations["patched"] != "true" {
		return fmt.Errorf("get after update: %v, %w", s, err)
	}
	if err := all.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err := all.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("expected 404, got %w", err)
	}
	if list, err := all.List(ctx, own); err != nil || len(list.Items) != 2 {
		return fmt.Errorf("list after a deletion: %d of 2, %w", len(list.Items), err)
	}
	if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, own); err != nil {
		return err
	}
	list, err := all.List(ctx, own)
	if err == nil && len(list.Items) != 0 {
		err = fmt.Errorf("list after all were deleted: %d", len(list.Items))
	}
	return err
}

// configMaps is "ConfigMap should run through a ConfigMap lifecycle", step by step.
func (w *writer) configMaps(ctx context.Context, _ *testing.T, i int) error {
	all, label := w.hub.CoreV1().ConfigMaps("default"), "lifecycle-"+w.node
	own := metav1.ListOptions{LabelSelector: "test=" + label}
	o := w.configMap(i, label)
	o.Name = "cycle-" + o.Name
	watch, err := all.Watch(ctx, own)
	if err != nil {
		return err
	}
	defer watch.Stop()
	if _, err := all.Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return err
	}
	if ev := <-watch.ResultChan(); ev.Type != "ADDED" {
		return fmt.Errorf("watched %v", ev)
	}
	if _, err := all.Patch(ctx, o.Name, types.StrategicMergePatchType, []byte(`{"data":{"a":"2"}}`),
		metav1.PatchOptions{}); err != nil {
		return err
	}
	if o, err = all.Get(ctx, o.Name, metav1.GetOptions{}); err != nil || o.Data["a"] != "2" {
		return fmt.Errorf("get after patch: %v, %w", o, err)
	}
	if list, err := w.hub.CoreV1().ConfigMaps("").List(ctx, own); err != nil || len(list.Items) != 1 {
		return fmt.Errorf("list: %d of 1, %w", len(list.Items), err)
	}
	if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, own); err != nil {
		return err
	}
	list, err := w.hub.CoreV1().ConfigMaps("").List(ctx, own)
	if err == nil && len(list.Items) != 0 {
		err = fmt.Errorf("list after all were deleted: %d", len(list.Items))
	}
	return err
}
