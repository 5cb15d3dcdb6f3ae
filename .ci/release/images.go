package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// shortDigest is how much of a digest a tag has.
const shortDigest = 12

// images writes the archive of each product, and returns what is in them, and by which digests a registry will have
// them.
func (c *config) images(ctx context.Context, stdout io.Writer) (programs []program, digests map[string]string,
	err error) {
	bin := filepath.Join(c.root, "bin/release-programs")
	if programs, err = c.programs(ctx, bin); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return nil, nil, err
	}
	digests = map[string]string{}
	for _, b := range everyImage() {
		if len(c.only) > 0 && !slices.Contains(c.only, b.name) {
			continue
		}
		if digests[b.name], err = c.write(b, programs, stdout); err != nil {
			return nil, nil, fmt.Errorf("image of %s: %w", b.name, err)
		}
	}
	return programs, digests, nil
}

func (c *config) write(of bundle, programs []program, stdout io.Writer) (string, error) {
	images := map[string]v1.Image{}
	for _, arch := range c.arches {
		var holds []program
		for _, name := range of.of {
			i := slices.IndexFunc(programs, func(p program) bool { return p.name == name && p.arch == arch })
			if i < 0 {
				return "", fmt.Errorf("%s was not built for %s", name, arch)
			}
			holds = append(holds, programs[i])
		}
		img, err := of.image(holds, c.version)
		if err != nil {
			return "", err
		}
		n, err := size(img)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(stdout, "%-16s %s: %.1f MB compressed, at most %d\n", of.name, arch, float64(n)/1e6, of.limit)
		if n > int64(of.limit)*1e6 {
			return "", fmt.Errorf("%s has %d bytes compressed, more than %d MB", arch, n, of.limit)
		}
		images[arch] = img
	}
	idx := index(images, c.arches)
	digest, err := idx.Digest()
	if err != nil {
		return "", err
	}
	tag := c.version
	if c.byContent {
		tag += "-" + digest.Hex[:shortDigest]
	}
	reference := c.repository + "/" + of.name + ":" + tag
	path := filepath.Join(c.out, of.name+".tar")
	var single v1.Image
	if len(c.arches) == 1 {
		single = images[c.arches[0]]
	}
	if err := archive(path, reference, tag, idx, single); err != nil {
		return "", err
	}
	fmt.Fprintf(stdout, "%-16s %s@%s\n", of.name, reference, digest)
	return digest.String(), nil
}
