package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// sums names the file of checksums, in the form that sha256sum --check reads.
const sums = "SHA256SUMS"

// all makes everything in the folder out.
func (c *config) all(ctx context.Context, stdout io.Writer) error {
	if !charts.MatchString(c.version) {
		return usageError(fmt.Sprintf("-version %q: a release has a version like v0.1.0 or v0.1.0-rc.1, since its chart has",
			c.version))
	}
	if err := os.RemoveAll(c.out); err != nil {
		return err
	}
	programs, digests, err := c.images(ctx, stdout)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := c.binary(p); err != nil {
			return fmt.Errorf("release %s for %s: %w", p.name, p.arch, err)
		}
	}
	if err := c.manual(ctx, programs); err != nil {
		return fmt.Errorf("manual page: %w", err)
	}
	if err := c.chart(ctx, digests, programs[0].made()); err != nil {
		return err
	}
	return c.checksums(stdout)
}

// charts have versions of semver.org, and so have releases, with a v before them.
var charts = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// binary copies a program, and writes what it was built of beside it.
func (c *config) binary(p program) error {
	data, err := os.ReadFile(p.path)
	if err != nil {
		return err
	}
	path := filepath.Join(c.out, p.name+"-linux-"+p.arch)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		return err
	}
	bill, err := p.sbom(c.version)
	if err != nil {
		return err
	}
	return os.WriteFile(path+".spdx.json", bill, 0o644)
}

// operators is the program that people type, which prints its own manual page.
const operators = "kubectl-weir"

// manual writes the page for man(1). The program is run, so where none was made for this machine it is built once more.
func (c *config) manual(ctx context.Context, programs []program) error {
	at := ""
	for _, p := range programs {
		if p.name == operators && p.arch == runtime.GOARCH {
			at = p.path
		}
	}
	if at == "" {
		own := config{root: c.root, version: c.version, arches: []string{runtime.GOARCH}}
		built, err := own.programs(ctx, filepath.Join(c.root, "bin/release-programs"))
		if err != nil {
			return err
		}
		return c.manual(ctx, built)
	}
	page, err := exec.CommandContext(ctx, at, "man").Output()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.out, operators+".1"), page, 0o644)
}

// chart packages the chart, and renders it with its usual values for those without Helm. Both name images by their
// digests.
func (c *config) chart(ctx context.Context, digests map[string]string, made time.Time) (err error) {
	version := strings.TrimPrefix(c.version, "v")
	path := filepath.Join(c.out, "weir-"+version+".tgz")
	dir, err := os.MkdirTemp(c.out, ".chart-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(c.root, "charts/weir"))); err != nil {
		return err
	}
	if err := c.pin(filepath.Join(dir, "values.yaml"), digests); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	if _, err := c.run(ctx, "package", dir, "--version", version, "--app-version", c.version, "--destination",
		c.out); err != nil {
		return err
	}
	if err := retime(path, made); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	plain, err := c.run(ctx, "template", "weir", path, "--namespace", "weir-system", "--no-hooks")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.out, "weir.yaml"), plain, 0o644)
}

// unpinned is an image of the values that is named by its tag alone.
var unpinned = regexp.MustCompile(`(repository: )ghcr\.io/weir-edge/([a-z-]+)(\n\s+tag: "".*\n\s+digest: )""`)

// pin lets the values name each image by its digest.
func (c *config) pin(path string, digests map[string]string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, pinned := string(data), 0
	text = unpinned.ReplaceAllStringFunc(text, func(image string) string {
		m := unpinned.FindStringSubmatch(image)
		pinned++
		return m[1] + c.repository + "/" + m[2] + m[3] + `"` + digests[m[2]] + `"`
	})
	if images := strings.Count(string(data), "repository: "); pinned != images || strings.Contains(text, `digest: ""`) {
		return fmt.Errorf("values.yaml: %d of %d images could be named by their digest: want the lines repository, tag and "+
			"digest of each, in this order", pinned, images)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// retime writes an archive again with one time for all files: helm writes when each was checked out.
func retime(path string, made time.Time) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	packed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	from, to := tar.NewReader(plain), tar.NewWriter(packed)
	for {
		h, err := from.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		kept := tar.Header{
			Format: tar.FormatUSTAR, Typeflag: h.Typeflag, Name: h.Name, Size: h.Size, Mode: 0o644, ModTime: made,
		}
		if err := to.WriteHeader(&kept); err != nil {
			return err
		}
		if _, err := io.Copy(to, from); err != nil {
			return err
		}
	}
	if err := errors.Join(to.Close(), packed.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func (c *config) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.helm, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("helm %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

// checksums are of every file.
func (c *config) checksums(stdout io.Writer) error {
	var lines strings.Builder
	dir := os.DirFS(c.out)
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		fmt.Fprintf(&lines, "%s  %s\n", hex.EncodeToString(sum[:]), name)
		return nil
	})
	fmt.Fprint(stdout, lines.String())
	return errors.Join(err, os.WriteFile(filepath.Join(c.out, sums), []byte(lines.String()), 0o644))
}
