package thief

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
)

// tokens are bootstrap tokens as kubeadm makes them, of nodes of a pool: Secrets that kube-apiserver reads.
type tokens struct {
	admin kubernetes.Interface
	pool  string
	made  []string // names of the Secrets
}

// issue makes a token of a node that lasts for a time; one that has ended if that is negative.
func (t *tokens) issue(ctx context.Context, node string, lasts time.Duration) (string, error) {
	text := strings.ToLower(rand.Text())
	id, secret := text[:6], text[6:22]
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"auth-extra-groups": contract.BootstrapGroup(t.pool, node),
			"expiration":        time.Now().Add(lasts).UTC().Format(time.RFC3339),
		},
	}
	if _, err := t.admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("make a bootstrap token: %w", err)
	}
	t.made = append(t.made, s.Name)
	return id + "." + secret, nil
}

// drop removes them.
func (t *tokens) drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, decided)
	defer cancel()
	for _, name := range t.made {
		_ = t.admin.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// known waits until kube-apiserver knows a token.
func known(ctx context.Context, by kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, decided)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		_, err := by.CertificatesV1().CertificateSigningRequests().Get(ctx, "none", metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsUnauthorized(err):
			return fmt.Errorf("kube-apiserver does not answer whom a bootstrap token is of: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("kube-apiserver takes no bootstrap token: is it started with --enable-bootstrap-token-auth?")
		}
	}
}
