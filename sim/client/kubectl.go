package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/sim/testca"
)

// Kubectl runs the real kubectl with a home, and hence a cache, of its own, and returns its standard output.
func Kubectl(ctx context.Context, path string, config *rest.Config, home string, args ...string) (string, error) {
	var pair *testca.Pair
	if config.BearerToken == "" {
		pair = &testca.Pair{CertPEM: config.CertData, KeyPEM: config.KeyData}
	}
	cluster := &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
	}
	kubeconfig, err := testca.KubeconfigOf(cluster, pair, config.BearerToken)
	if err != nil {
		return "", err
	}
	file := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", file}, args...)...)
	cmd.Env = []string{"HOME=" + home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
