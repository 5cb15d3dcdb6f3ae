package manager

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
)

// briefKey is an annotation of ConfigMaps in the cache: the bulletin.Brief of the document that it has.
const briefKey = "brief"

// signedBy are the names of ConfigMaps that have a signed document, before the name of the pool, and where it stands.
// They are in the order of a bulletin.Board, which the configuration of the pool ends.
var signedBy = [...]struct{ prefix, key string }{
	{contract.AuthorityPrefix, contract.TrustKey}, {contract.DenylistPrefix, contract.DenylistKey},
}

// trimData leaves the name of a ConfigMap, its version, and the brief of the document that it has.
func trimData(o any) (any, error) {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return o, nil
	}
	trimmed := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion},
	}
	for _, d := range signedBy {
		if text := m.Data[d.key]; text != "" {
			trimmed.Annotations = map[string]string{briefKey: bulletin.Brief([]byte(text))}
		}
	}
	return trimmed, nil
}

// documents is the bulletin.Sum of a pool's signed documents, as the cloud has them; "": that is not known.
func (m *certifier) documents(ctx context.Context, pool string) string {
	none, all := bulletin.Brief(nil), make([]string, 0, len(signedBy)+1)
	for _, d := range signedBy {
		kept := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: contract.KeyNamespace, Name: d.prefix + pool}
		if err := m.keys.Get(ctx, key, kept); client.IgnoreNotFound(err) != nil {
			return ""
		}
		all = append(all, cmp.Or(kept.Annotations[briefKey], none))
	}
	told := &corev1.Endpoints{}
	key := client.ObjectKey{Namespace: contract.ManagerNamespace, Name: contract.LeaderHubPrefix + pool}
	// Without NodePools this weir-manager signs no configuration, and reads none.
	var unread *cache.ErrResourceNotCached
	if err := m.ctrl.GetClient().Get(ctx, key, told); client.IgnoreNotFound(err) != nil && !errors.As(err, &unread) {
		return ""
	}
	return bulletin.Sum(append(all, bulletin.Brief([]byte(told.Annotations[contract.LeaderHubSigned])))...)
}
