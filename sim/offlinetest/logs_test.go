package offlinetest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/hub/shelter"
)

// standIn is the port of a kubelet, which has one log. It asks its API server who may read that, as a kubelet does.
func (b *bed) standIn() {
	b.t.Helper()
	l, err := net.Listen("tcp", shelter.KubeletAddress)
	if err != nil {
		b.t.Skip("this machine has a kubelet: ", err)
	}
	api, err := kubernetes.NewForConfig(b.kubelet("kubelet", runtime.ContentTypeProtobuf))
	check(b.t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if len(req.TLS.PeerCertificates) == 0 || req.Header.Get("Authorization") != "" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		r, err := api.AuthorizationV1().SubjectAccessReviews().Create(req.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: req.TLS.PeerCertificates[0].Subject.CommonName,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "get", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: edge,
				},
			},
		}, metav1.CreateOptions{})
		if err != nil || !r.Status.Allowed {
			http.Error(w, "Forbidden", http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, "this is "+req.URL.Path+"\n")
	}))
	_ = s.Listener.Close()
	s.Listener, s.TLS = l, &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	b.t.Cleanup(s.Close)
}

// repairer is a person with a token, who may see pods of a namespace and read their logs.
func (b *bed) repairer() (run func(args ...string) (string, error)) {
	t, ctx := b.t, b.t.Context()
	const name, namespace = "repair", "default"
	_, err := b.admin.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(t, err)
	_, err = b.admin.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			rule("", "pods", "get list"), rule("", "pods/log", "get"),
		},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = b.admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	check(t, err)
	token, err := b.admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	check(t, err)
	return func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, b.kubectl, append([]string{
			"--kubeconfig=/dev/null", "--cache-dir=" + filepath.Join(b.dir, "repair-cache"), "--server=" + b.url,
			"--certificate-authority=" + filepath.Join(b.dir, "node-authority.crt"), "--token=" + token.Status.Token,
		}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// TestLogs: kubectl reads logs of pods of the node that is cut off, for a caller that has read some before, through a
// restart of the hub. While the cloud is there it decides and answers, even if it does not reach the kubelet.
func TestLogs(t *testing.T) {
	b := newBed(t, nil)
	b.fill(3, 4)
	a := b.startAgent("kubelet", runtime.ContentTypeProtobuf, 4)
	a.synced()
	b.standIn()
	repair := b.repairer()
	eventually(t, "the role to count", func() bool {
		_, err := repair("get", "pods", "-n", "default")
		return err == nil
	})
	before := b.metric("weir_hub_authorizations_total", "outcome", "allowed")
	if out, err := repair("logs", "-n", "default", "pod-00", "--request-timeout=40s"); err == nil {
		t.Fatalf("the cloud of this test has no kubelet, and yet: %s", out)
	}
	eventually(t, "the hub to ask", func() bool {
		return b.metric("weir_hub_authorizations_total", "outcome", "allowed") > before
	})
	b.written()
	b.cut()
	b.restart()
	eventually(t, "the log", func() bool {
		out, err := repair("logs", "-n", "default", "pod-01")
		if err != nil {
			t.Log(out)
		}
		return err == nil && strings.HasPrefix(out, "this is /containerLogs/default/pod-01/")
	})
	for _, args := range [][]string{
		{"logs", "-n", "default", "none"}, {"exec", "-n", "default", "pod-01", "--", "true"},
	} {
		if out, err := repair(args...); err == nil || !strings.Contains(out, "the cloud is away") {
			t.Errorf("kubectl %v: %v: %s", args, err, out)
		}
	}
	b.heal()
	eventually(t, "the cloud to decide again", func() bool {
		out, err := repair("logs", "-n", "default", "pod-01", "--request-timeout=40s")
		return err != nil && !strings.Contains(out, "the cloud is away")
	})
}
