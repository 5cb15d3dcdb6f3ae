package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// moduleDir is the nested module below the root of the repository; those of other versions are inside of it.
const moduleDir = "sim/controlplane"

// Built reports whether commands are in the cache: tests that need more than the base leave it to others to build them.
func Built(ctx context.Context, names ...string) bool {
	k, err := Choose("")
	if err != nil || k.check(names) != nil {
		return false
	}
	root, err := gobuild.Root("")
	if err != nil {
		return false
	}
	groups, err := k.grouped(ctx, root, names)
	for _, g := range groups {
		if _, missing := cached(g.dir, g.names); len(missing) > 0 {
			return false
		}
	}
	return err == nil
}

// group are commands that are built from the same sources, and their folder in the cache.
type group struct {
	dir   string
	names []string
}

// grouped sorts commands by their sources: Kubernetes's depend on the module's versions only, ours on its own files
// too.
func (k Kubernetes) grouped(ctx context.Context, root string, names []string) (groups []group, err error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	kubernetes := slices.DeleteFunc(slices.Clone(names), isOurs)
	if len(kubernetes) > 0 {
		key, err := k.contentKey(ctx, root, "")
		if err != nil {
			return nil, err
		}
		groups = append(groups, group{filepath.Join(cache, key), kubernetes})
	}
	for _, name := range names {
		if !isOurs(name) {
			continue
		}
		key, err := k.contentKey(ctx, root, name)
		if err != nil {
			return nil, err
		}
		groups = append(groups, group{filepath.Join(cache, key), []string{name}})
	}
	return groups, nil
}

// buildCached returns the binaries from the cache and builds those that are not there.
func (k Kubernetes) buildCached(ctx context.Context, s *proc.Spawner, progress func(string), names []string) (
	Binaries, error) {
	root, err := gobuild.Root("")
	if err != nil {
		return nil, fmt.Errorf("%w, or set KUBEBUILDER_ASSETS to a folder with %s %s.x", err, strings.Join(names, " and "),
			k.minor())
	}
	groups, err := k.grouped(ctx, root, names)
	if err != nil {
		return nil, err
	}
	found := Binaries{}
	for _, g := range groups {
		built, err := k.buildKeyed(ctx, s, progress, filepath.Join(root, k.module), g.dir, g.names)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, built)
	}
	return found, nil
}

func isOurs(name string) bool { return name == HollowNode || name == E2E }

// buildKeyed returns the binaries from one folder of the cache, and builds there what is missing.
func (k Kubernetes) buildKeyed(ctx context.Context, s *proc.Spawner, progress func(string), module, dir string,
	names []string) (Binaries, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the cache of built binaries: %w", err)
	}
	if found, missing := cached(dir, names); len(missing) == 0 {
		return found, nil
	}

	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), func(waited time.Duration) {
		progress(fmt.Sprintf("another run builds the control plane; waiting for it, %s", waited.Round(time.Second)))
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, missing := cached(dir, names)
	if len(missing) == 0 {
		return found, nil
	}
	if err := k.buildInto(ctx, s, progress, module, dir, missing); err != nil {
		return nil, err
	}
	found, missing = cached(dir, names)
	if len(missing) > 0 {
		return nil, fmt.Errorf("build control plane: %s did not appear in %s", strings.Join(missing, ", "), dir)
	}
	return found, nil
}

// buildInto builds into a folder beside the final places, then moves each binary there in one step, so that nobody
// ever finds half of one.
func (k Kubernetes) buildInto(ctx context.Context, s *proc.Spawner, progress func(string), module, dir string,
	names []string) error {
	temp, err := os.MkdirTemp(dir, ".build-")
	if err != nil {
		return fmt.Errorf("build control plane: %w", err)
	}
	defer os.RemoveAll(temp)
	packages := make([]string, 0, len(names))
	for _, name := range names {
		if isOurs(name) {
			packages = append(packages, "./"+name)
		} else {
			packages = append(packages, "k8s.io/kubernetes/cmd/"+name)
		}
	}
	spec := gobuild.Spec{
		Name:     fmt.Sprintf("control plane %s (%s)", k, strings.Join(names, ", ")),
		Dir:      module,
		Packages: packages,
		Output:   temp,
		LDFlags:  k.ldflags(),
	}
	progress(spec.Name + ": building from the module proxy, once; this takes some 10 to 20 minutes on two cores when " +
		"nothing is cached")
	if err := gobuild.Run(ctx, s, spec, progress); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(temp, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("build control plane: %w", err)
		}
	}
	return nil
}

// contentKey names everything that decides what is built; sources is a folder of the module, or empty.
func (k Kubernetes) contentKey(ctx context.Context, root, sources string) (string, error) {
	module := filepath.Join(root, k.module)
	h := sha256.New()
	files := []string{"go.mod", "go.sum"}
	if sources != "" {
		own, err := filepath.Glob(filepath.Join(module, sources, "*.go"))
		if err != nil {
			return "", fmt.Errorf("list the sources of %s: %w", sources, err)
		}
		for _, path := range own {
			files = append(files, filepath.Join(sources, filepath.Base(path)))
		}
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("read the control plane's module: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOFLAGS")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), gobuild.Env()...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask the Go toolchain for its version: %w", err)
	}
	fmt.Fprintf(h, "%s%s\n%s", out, k.ldflags(), strings.Join(gobuild.Env(), "\n"))
	return fmt.Sprintf("%s-%s-%s", k, runtime.GOARCH, hex.EncodeToString(h.Sum(nil))[:16]), nil
}

// cacheDir is $XDG_CACHE_HOME/weir/controlplane.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(base, "weir", "controlplane"), nil
}

func cached(dir string, names []string) (found Binaries, missing []string) {
	found = Binaries{}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found[name] = path
		} else {
			missing = append(missing, name)
		}
	}
	return found, missing
}

// lock takes the lock file, which the kernel gives back when this process ends, however it ends.
func lock(ctx context.Context, path string, waiting func(time.Duration)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	const retry, tell = 200 * time.Millisecond, 3 * time.Second
	begin, told := time.Now(), time.Time{}
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		err := disk.TryLock(f)
		if err == nil {
			return func() { _ = disk.Unlock(f) }, nil
		}
		if !errors.Is(err, disk.ErrLocked) {
			_ = f.Close()
			return nil, err
		}
		if time.Since(told) >= tell {
			waiting(time.Since(begin))
			told = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		}
	}
}
