package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// product is a command that has an image.
type product struct {
	name  string
	about string
	user  string // that it runs as
	limit int    // MB that its image may have for one architecture, compressed
}

// products are the commands of impl/cmd, each of which has a row.
var products = []product{
	{"weir-hub", "The one door of an edge node to the Kubernetes API.", nobody, 12},
	{"weir-coordinator", "The small Kubernetes API of an edge pool.", nobody, 25},
	{"weir-manager", "Weir's part in the cloud: pools, their certificates, and who is cut off.", nobody, 25},
	{"weir-gate", "The relay beside kube-apiserver: pools read there as differences what they share.", nobody, 25},
	{"kubectl-weir", "What operators of a cluster with Weir type, and what leads a node to its hub.", nobody, 15},
}

// bundle is an image. It runs the first of its programs.
type bundle struct {
	product
	of []string
}

// everyImage are those of single products, and what holds several.
func everyImage() (all []bundle) {
	for _, p := range products {
		all = append(all, bundle{p, []string{p.name}})
	}
	// Root: it goes to the machine below its container, and has systemd start weir node join there.
	return append(all, bundle{
		product{"weir-installer", "What leads the kubelet of an edge node to its hub.", "0:0", 27},
		[]string{operators, "weir-hub"},
	})
}

// nobody is a user without rights, known by its number: runAsNonRoot asks for that.
const nobody = "65532:65532"

// program is a binary of a product for one architecture.
type program struct {
	product
	arch string
	path string
	info *buildinfo.BuildInfo
}

// programs builds all products for all architectures into the folder bin.
func (c *config) programs(ctx context.Context, bin string) ([]program, error) {
	entries, err := os.ReadDir(filepath.Join(c.root, "impl/cmd"))
	if err != nil {
		return nil, fmt.Errorf("find commands: %w", err)
	}
	for _, e := range entries {
		if !slices.ContainsFunc(products, func(p product) bool { return p.name == e.Name() }) {
			return nil, fmt.Errorf("impl/cmd/%s: the table of products has no row for it", e.Name())
		}
	}
	var out []program
	for _, arch := range c.arches {
		dir := filepath.Join(bin, arch)
		if err := compile(ctx, c.root, dir, arch, "-X github.com/weir-edge/weir/impl/cli.version="+c.version,
			"./impl/cmd/..."); err != nil {
			return nil, err
		}
		for _, p := range products {
			built, err := read(p, arch, filepath.Join(dir, p.name))
			if err != nil {
				return nil, err
			}
			out = append(out, built)
		}
	}
	return out, nil
}

// compile builds commands. -trimpath: their bytes do not tell where they were built.
func compile(ctx context.Context, dir, out, arch, ldflags string, packages ...string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w " + ldflags, "-o", out + string(filepath.Separator)},
		packages...)
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir, build.Stderr = dir, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=linux", "GOARCH="+arch)
	if err := build.Run(); err != nil {
		return fmt.Errorf("build %s for %s: %w", strings.Join(packages, " "), arch, err)
	}
	return nil
}

func read(p product, arch, path string) (program, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return program{}, fmt.Errorf("read what %s was built of: %w", p.name, err)
	}
	built := program{p, arch, path, info}
	if got := built.setting("GOARCH"); got != arch {
		return program{}, fmt.Errorf("%s is for %q, not for %s", path, got, arch)
	}
	return built, nil
}

// setting is one of the build settings that the toolchain left in the binary.
func (p program) setting(key string) string {
	for _, s := range p.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// made is the time of the commit, so that it is the same whenever this is built.
func (p program) made() time.Time {
	if t, err := time.Parse(time.RFC3339, p.setting("vcs.time")); err == nil {
		return t.UTC()
	}
	return time.Unix(0, 0).UTC()
}
