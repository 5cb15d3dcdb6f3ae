package runtime

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	registryPort   = "5000"
	containerdPort = "10241" // of what steers a node's containerd

	// Modules of programs that the testbed has for images. Neither may make the product's go.mod longer.
	registryModule   = ".ci/release"
	containerdModule = "sim/puller"
)

// registry is the registry of the cloud's images, and what its clients need.
type registry struct {
	address    string
	pulled     map[string]int64  // what a pull brings, by image
	containerd string            // path of the program
	nodes      map[string]string // URL of the containerd of each node
}

// addRegistry makes the images and prepares the registry that has them.
func (s *localSite) addRegistry(ctx context.Context, progress Progress) error {
	x := &registry{pulled: map[string]int64{}, nodes: map[string]string{}}
	dir, err := s.spawner.Scratch("registry")
	if err != nil {
		return err
	}
	served, err := s.spawner.Scratch("registry", "served")
	if err != nil {
		return err
	}
	host, err := s.blocks[0].Addr(1)
	if err != nil {
		return err
	}
	x.address = net.JoinHostPort(host, registryPort)
	args := []string{"--listen=" + x.address, "--dir=" + served}
	for i, m := range s.topology.Images {
		progress(fmt.Sprintf("making the image %s", m.Name))
		archive := filepath.Join(dir, fmt.Sprintf("image-%d.tar", i+1))
		if x.pulled[m.Name], err = m.WriteArchive(archive); err != nil {
			return err
		}
		args = append(args, archive)
	}
	program, err := parts.FindNested(ctx, s.spawner, progress, registryModule, "registry")
	if err != nil {
		return err
	}
	if x.containerd, err = parts.FindNested(ctx, s.spawner, progress, containerdModule, "."); err != nil {
		return err
	}
	s.registry = x
	s.addPart(Registry, parts.NewCommand(parts.Launch{
		Spawner: s.spawner, Name: "registry", Path: program, Dir: dir, LogFile: filepath.Join(s.logDir, "registry.log"),
	}, args, "http://"+x.address, http.DefaultTransport))
	return nil
}

// addContainerd prepares the containerd of a node: its way to the registry, and how certs.d leads there.
func (x *localPool) addContainerd(name, address string) error {
	s := x.site
	near, err := x.uplink.Proxy(name, ClassImage, s.ground.near(address), s.registry.address)
	if err != nil {
		return err
	}
	dir, err := s.spawner.Scratch(x.Name, name, "containerd")
	if err != nil {
		return err
	}
	root, err := s.spawner.Scratch(x.Name, name, "containerd", "root")
	if err != nil {
		return err
	}
	certs := filepath.Join(dir, "certs.d")
	for _, m := range s.topology.Images {
		folder := filepath.Join(certs, m.Registry())
		if _, err := testca.WriteFile(folder, "hosts.toml", x.hosts(near.Addr(), address)); err != nil {
			return err
		}
	}
	control := net.JoinHostPort(address, containerdPort)
	s.registry.nodes[name] = "http://" + control
	args := []string{"--listen=" + control, "--root=" + root, "--certs-dir=" + certs}
	s.addPart(ContainerdOf(name), parts.NewCommand(parts.Launch{
		Spawner: s.spawner, Name: "containerd of " + name, Path: s.registry.containerd, Dir: dir, Data: root,
		LogFile: filepath.Join(s.logDir, "containerd-"+name+".log"),
	}, args, "http://"+control, http.DefaultTransport))
	return nil
}

// contentOf is the content store of a node's containerd, where containerd has it below its root.
func (x *localPool) contentOf(node string) (string, error) {
	root, err := x.site.spawner.Scratch(x.Name, node, "containerd", "root")
	return filepath.Join(root, "io.containerd.content.v1.content"), err
}

// hosts is a hosts.toml: the hub of the node, if there is one, is asked before the registry.
func (x *localPool) hosts(registry, address string) []byte {
	text := fmt.Appendf(nil, "server = %q\n", "http://"+registry)
	if x.Mode != Stock {
		text = fmt.Appendf(text, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", "http://"+mirror(address))
	}
	return text
}

// mirror is where the hub of a node serves images.
func mirror(address string) string {
	return net.JoinHostPort(address, strconv.Itoa(contract.HubImagesPort))
}

// Pulled implements Pulls.
func (s *localSite) Pulled(image string) (int64, error) {
	if s.registry != nil && s.registry.pulled[image] > 0 {
		return s.registry.pulled[image], nil
	}
	return 0, fmt.Errorf("the registry has no image %q", image)
}

// Pull implements Pulls.
func (s *localSite) Pull(ctx context.Context, node, image string) error {
	if s.registry == nil || s.registry.nodes[node] == "" {
		return fmt.Errorf("there is no containerd on node %q", node)
	}
	to := s.registry.nodes[node] + "/pull?" + url.Values{"image": {image}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("pull %s on %s: %w", image, node, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", strings.TrimSpace(string(said)))
	}
	if err != nil {
		return fmt.Errorf("pull %s on %s: %w", image, node, err)
	}
	return nil
}
