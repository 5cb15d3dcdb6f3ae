package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// images writes the archive of each product, and returns what is in them, and by which digests a registry will have them.
func (c *config) images(ctx context.Context, stdout io.Writer) (programs []program, digests map[string]string, err error) {
	bin := filepath.Join(c.root, "bin/release-programs")
	if programs, err = c.programs(ctx, bin); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return nil, nil, err
	}
	digests = map[string]string{}
	for _, p := range products {
		if digests[p.name], err = c.write(p, programs, stdout); err != nil {
			return nil, nil, fmt.Errorf("image of %s: %w", p.name, err)
		}
	}
	return programs, digests, nil
}

func (c *config) write(of product, programs []program, stdout io.Writer) (string, error) {
	images := map[string]v1.Image{}
	for _, p := range programs {
		if p.name != of.name {
			continue
		}
		img, err := p.image(c.version)
		if err != nil {
			return "", err
		}
		n, err := size(img)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(stdout, "%-16s %s: %.1f MB compressed, at most %d\n", p.name, p.arch, float64(n)/1e6, p.limit)
		if n > int64(p.limit)*1e6 {
			return "", fmt.Errorf("%s has %d bytes compressed, more than %d MB", p.arch, n, p.limit)
		}
		images[p.arch] = img
	}
	idx := index(images, c.arches)
	digest, err := idx.Digest()
	if err != nil {
		return "", err
	}
	reference := c.repository + "/" + of.name + ":" + c.version
	path := filepath.Join(c.out, of.name+".tar")
	if err := archive(path, reference, c.version, idx); err != nil {
		return "", err
	}
	fmt.Fprintf(stdout, "%-16s %s@%s\n", of.name, reference, digest)
	return digest.String(), nil
}
