package cloud

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-edge/weir/sim/proc"
)

// Names of control-plane binaries.
const (
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	Kubectl               = "kubectl"
	Kubelet               = "kubelet"
	// HollowNode is our own: a real kubelet over a runtime that is not there. It is always built.
	HollowNode = "hollow-node"
	// E2E is Kubernetes' own end-to-end tests. It is always built.
	E2E = "e2e"
)

// Binaries maps names of control-plane binaries to their paths.
type Binaries map[string]string

// Find returns the asked binaries of the version that the environment asks for.
func Find(ctx context.Context, s *proc.Spawner, progress func(string), names ...string) (Binaries, error) {
	k, err := Choose("")
	if err != nil {
		return nil, err
	}
	return k.Find(ctx, s, progress, names...)
}

// Find returns the asked binaries: from the folder in KUBEBUILDER_ASSETS or from PATH if they are of the right minor
// version, else from the cache of built ones, else it builds them.
func (k Kubernetes) Find(ctx context.Context, s *proc.Spawner, progress func(string), names ...string) (
	Binaries, error) {
	if err := k.check(names); err != nil {
		return nil, err
	}
	found := Binaries{}
	var missing []string
	for _, name := range names {
		if isOurs(name) {
			missing = append(missing, name)
			continue
		}
		path, err := k.installed(ctx, name, progress)
		switch {
		case err != nil:
			return nil, err
		case path != "":
			found[name] = path
		default:
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	built, err := k.buildCached(ctx, s, progress, missing)
	if err != nil {
		return nil, err
	}
	for name, path := range built {
		found[name] = path
	}
	return found, nil
}

// installed looks where people keep such binaries. It returns "" when there is none that fits.
func (k Kubernetes) installed(ctx context.Context, name string, progress func(string)) (string, error) {
	var candidates []string
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		candidates = append(candidates, filepath.Join(assets, name))
	}
	if path, err := exec.LookPath(name); err == nil {
		candidates = append(candidates, path)
	}
	for _, path := range candidates {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		version, err := versionOf(ctx, name, path)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			progress(fmt.Sprintf("%s does not tell its version and is not used: %v", path, err))
		case version != k.minor() && !strings.HasPrefix(version, k.minor()+"."):
			progress(fmt.Sprintf("%s is %s and is not used: want %s.x", path, version, k.minor()))
		default:
			progress(fmt.Sprintf("using %s %s", path, version))
			return path, nil
		}
	}
	return "", nil
}

// versionOf asks a binary for its version: "v1.37.1".
func versionOf(ctx context.Context, name, path string) (string, error) {
	args := []string{"--version"}
	if name == Kubectl {
		args = []string{"version", "--client"}
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, firstLine(string(out)))
	}
	for field := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(field, "v1.") {
			return field, nil
		}
	}
	return "", fmt.Errorf("it prints %q", firstLine(string(out)))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
