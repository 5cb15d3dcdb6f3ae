package certificates

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// vault keeps the authorities of pools, and which bootstrap tokens were used.
type vault struct {
	client client.Client
	reader client.Reader
	clock  clock.PassiveClock
}

// requestKey is of the ConfigMap of a token: uid of the request that it was used for.
const requestKey = "request"

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: contract.KeyNamespace, Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "weir"},
	}
}

func keyName(pool string) string { return contract.AuthorityPrefix + pool }

// open returns the authority of a pool, and makes it if the pool has none.
func (v *vault) open(ctx context.Context, pool string) (*pki.Succession, error) {
	fail := func(err error) (*pki.Succession, error) {
		return nil, fmt.Errorf("authority of pool %s in namespace %s: %w", pool, contract.KeyNamespace, err)
	}
	key := types.NamespacedName{Namespace: contract.KeyNamespace, Name: keyName(pool)}
	told := &corev1.ConfigMap{}
	known := v.reader.Get(ctx, key, told)
	if known != nil && !apierrors.IsNotFound(known) {
		return fail(known)
	}
	kept := &corev1.Secret{}
	err := v.reader.Get(ctx, key, kept)
	if apierrors.IsNotFound(err) {
		if known == nil {
			return fail(
				fmt.Errorf("secret %s is lost: its key signed what ConfigMap %[1]s vouches for; restore it, or replace it by "+
					"weir pki rotate --pool %s --lost-key", key.Name, pool))
		}
		if err = v.create(ctx, pool); err == nil {
			err = v.reader.Get(ctx, key, kept) // what another one created a moment before counts
		}
	}
	if err != nil {
		return fail(err)
	}
	s, err := load(kept, pool)
	if err != nil {
		return fail(err)
	}
	if err := v.publish(ctx, told, pool, s, 0, nil); err != nil {
		return fail(err)
	}
	return s, nil
}

// Authority returns the authority of a pool, nil if the pool has none.
func Authority(ctx context.Context, c client.Client, r client.Reader, now clock.PassiveClock, pool string) (
	*pki.Succession, error) {
	err := r.Get(ctx, types.NamespacedName{Namespace: contract.KeyNamespace, Name: keyName(pool)}, &corev1.ConfigMap{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("authority of pool %s: %w", pool, err)
	}
	return (&vault{c, r, now}).open(ctx, pool)
}

// Signer returns the authority that signs for a pool, as its Secret has it; nil if there is no Secret. It makes none,
// and tells nobody whom to trust. So it works also where another one signs certificates, if the key was handed over.
func Signer(ctx context.Context, r client.Reader, pool string) (*pki.Authority, error) {
	kept := &corev1.Secret{}
	err := r.Get(ctx, types.NamespacedName{Namespace: contract.KeyNamespace, Name: keyName(pool)}, kept)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var s *pki.Succession
	if err == nil {
		s, err = load(kept, pool)
	}
	if err != nil {
		return nil, fmt.Errorf("authority of pool %s: %w", pool, err)
	}
	return s.Signer, nil
}

// load reads a Secret that has the authority of a pool.
func load(kept *corev1.Secret, pool string) (*pki.Succession, error) {
	s, err := pki.LoadSuccession(kept.Data)
	if err != nil {
		return nil, err
	}
	return s, pki.CheckAuthority(s.Signer.Cert(), pool)
}

func (v *vault) create(ctx context.Context, pool string) error {
	a, err := pki.NewPoolAuthority(pool, v.clock.Now())
	if err != nil {
		return err
	}
	files, err := (&pki.Succession{Signer: a}).Files()
	if err != nil {
		return err
	}
	err = v.client.Create(ctx, &corev1.Secret{ObjectMeta: meta(keyName(pool)), Data: files})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// publish sees to it that those who verify can learn whom to trust, by a bundle of a number or above. old is what is
// published, empty if nothing is. annotate sets what else it says.
func (v *vault) publish(ctx context.Context, old *corev1.ConfigMap, pool string, s *pki.Succession, above uint64,
	annotate func(annotations map[string]string)) error {
	text, err := trust.Publish([]byte(old.Data[contract.TrustKey]), pool, s, above, v.clock.Now())
	if err != nil {
		return err
	}
	data := map[string]string{contract.AuthorityKey: string(s.TrustPEM()), contract.TrustKey: string(text)}
	annotations := maps.Clone(old.Annotations)
	if annotate != nil {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotate(annotations)
	}
	if maps.Equal(old.Data, data) && maps.Equal(old.Annotations, annotations) {
		return nil
	}
	if old.Name == "" {
		m := meta(keyName(pool))
		m.Annotations = annotations
		err := v.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: m, Data: data})
		if apierrors.IsAlreadyExists(err) {
			return nil // by another one, at the same time and with the same Secret
		}
		return err
	}
	old.Data, old.Annotations = data, annotations
	return v.client.Update(ctx, old)
}

// spend notes that a bootstrap token is used for a request, and refuses it if it was used for another one. The note
// goes with the Node.
func (v *vault) spend(ctx context.Context, token string, kind pki.Kind, node *corev1.Node, request types.UID) error {
	note := &corev1.ConfigMap{
		ObjectMeta: meta(fmt.Sprintf("token-%s-%s", token, kind)), Data: map[string]string{requestKey: string(request)},
	}
	note.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	err := v.client.Create(ctx, note)
	if apierrors.IsAlreadyExists(err) {
		var used corev1.ConfigMap
		if err = v.reader.Get(ctx, client.ObjectKeyFromObject(note), &used); err == nil &&
			used.Data[requestKey] != string(request) {
			return refuse("token", token, "one that was not used before, for a "+string(kind)+": make another one")
		}
	}
	if err != nil {
		return fmt.Errorf("note the use of token %s: %w", token, err)
	}
	return nil
}
