package e2e_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/testca"
)

var _ = Describe("kubectl at a hub", Label("kubectl"), func() {
	It("reads logs, executes and forwards ports", func(ctx SpecContext) {
		deployWeb(ctx, "tooled", 4)
		for i, pod := range podsOf(ctx, "tooled") {
			through := nodesOf(weir)[i%2]
			logs, err := kubectl(ctx, through, "logs", pod.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(logs).To(ContainSubstring("serving as " + pod.Name))
			said, err := kubectl(ctx, through, "exec", pod.Name, "--", "/app", "say", "hello")
			Expect(err).NotTo(HaveOccurred())
			Expect(said).To(ContainSubstring("hello"))
			Expect(forwarded(ctx, through, pod.Name)).To(Equal(pod.Name))
		}
	}, SpecTimeout(2*long))
})

// kubectlCommand is kubectl of somebody who may do everything in the namespace, at the hub of a node.
func kubectlCommand(ctx context.Context, node string, args ...string) *exec.Cmd {
	GinkgoHelper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-e2e-kubectl"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: "kubectl"}},
	}
	if _, err := client.RbacV1().RoleBindings(namespace).Create(ctx, binding,
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	e, err := pools.Endpoint(node, runtime.ClassNode)
	Expect(err).NotTo(HaveOccurred())
	token, err := pools.Token(ctx, "kubectl")
	Expect(err).NotTo(HaveOccurred())
	config, err := testca.KubeconfigOf(&clientcmdapi.Cluster{
		Server: e.URL, CertificateAuthorityData: e.CAPEM, CertificateAuthority: e.CAFile,
	}, nil, token)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, config, 0o600)).To(Succeed())
	tool, err := pools.Tool("kubectl")
	Expect(err).NotTo(HaveOccurred())
	return exec.CommandContext(ctx, tool, append([]string{"--kubeconfig", path, "--namespace", namespace}, args...)...)
}

func kubectl(ctx context.Context, node string, args ...string) (string, error) {
	GinkgoHelper()
	out, err := kubectlCommand(ctx, node, args...).CombinedOutput()
	return string(out), err
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

// forwarded fetches from a pod through kubectl port-forward.
func forwarded(ctx context.Context, node, pod string) string {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := kubectlCommand(ctx, node, "port-forward", pod, ":8080")
	stdout, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(cmd.Start()).To(Succeed())
	defer func() { cancel(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		m := forwarding.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m[1], nil)
		Expect(err).NotTo(HaveOccurred())
		resp, err := http.DefaultClient.Do(req)
		Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		Expect(err).NotTo(HaveOccurred())
		return strings.TrimSpace(string(body))
	}
	Fail("kubectl port-forward ended without a port")
	return ""
}
