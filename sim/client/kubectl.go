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
)

// Kubectl runs the real kubectl with a home of its own, and returns its standard output.
func Kubectl(ctx context.Context, path string, config *rest.Config, home string, args ...string) (string, error) {
	ca := filepath.Join(home, "ca.crt")
	if err := os.WriteFile(ca, config.CAData, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--server", config.Host, "--certificate-authority", ca, "--token", config.BearerToken}, args...)...)
	cmd.Env = []string{"HOME=" + home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
