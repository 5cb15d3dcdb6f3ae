package install_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// released is what the names of a release's images begin with.
const released = "ghcr.io/weir-edge/"

// serveImages runs a registry on the network of the cluster that has the images of all releases, and leads the machines
// to it. They have no image of Weir.
func serveImages(ctx context.Context) {
	GinkgoHelper()
	dir, err := on.spawner.Scratch("registry")
	Expect(err).NotTo(HaveOccurred())
	Expect(gobuild.Run(ctx, on.spawner, gobuild.Spec{
		Name: "registry", Dir: filepath.Join(on.root, ".ci", "release"), Packages: []string{"./registry"}, Output: dir,
	}, tell)).To(Succeed())
	args := []string{"-listen", net.JoinHostPort(on.run.Network.Gateway, "0")}
	for _, folder := range on.release {
		some, err := filepath.Glob(filepath.Join(folder, "*.tar"))
		Expect(err).NotTo(HaveOccurred())
		Expect(some).NotTo(BeEmpty())
		args = append(args, some...)
	}
	log := filepath.Join(dir, "log")
	_, err = on.spawner.Start(proc.Spec{
		Name: "registry", Path: filepath.Join(dir, "registry"), Args: args, Env: []string{"TMPDIR=" + dir}, LogFile: log,
	})
	Expect(err).NotTo(HaveOccurred())
	var address string
	Eventually(ctx, func() string { address = kind.FirstAddress(log); return address }, long, poll).ShouldNot(BeEmpty())
	hosts := fmt.Sprintf("server = \"https://ghcr.io\"\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
		address)
	for _, m := range machines() {
		out, err := m.Exec(ctx, "mkdir", "-p", kind.Registries+"/ghcr.io")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(m.Write(ctx, kind.Registries+"/ghcr.io/hosts.toml", strings.NewReader(hosts))).To(Succeed())
		Expect(imagesOn(ctx, m.Exec)).To(BeEmpty())
	}
}

// imagesOn are the images of Weir that a machine has.
func imagesOn(ctx context.Context, exec func(context.Context, ...string) (string, error)) (all []string) {
	GinkgoHelper()
	out, err := exec(ctx, "ctr", "--namespace=k8s.io", "images", "ls", "-q")
	Expect(err).NotTo(HaveOccurred())
	for name := range strings.Lines(out) {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, released) {
			all = append(all, name)
		}
	}
	return all
}

// byDigest holds that a machine has pulled an image by its digest and by nothing else.
func byDigest(ctx context.Context, exec func(context.Context, ...string) (string, error), image string) {
	GinkgoHelper()
	all := slices.DeleteFunc(imagesOn(ctx, exec), func(name string) bool {
		return !strings.HasPrefix(name, released+image)
	})
	Expect(all).To(HaveEach(HavePrefix(released + image + "@sha256:")))
	Expect(all).To(HaveLen(1))
}
