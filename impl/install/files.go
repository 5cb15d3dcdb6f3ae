package install

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install/cluster"
	"github.com/weir-edge/weir/impl/install/host"
)

// hubFlags are the hub's configuration: its flags, by name.
func (i *Installer) hubFlags(k *kubelet, n *cluster.Node, m *mirror) map[string]any {
	flags := map[string]any{
		"node-name": k.node, "nodepool-name": i.Pool, "cloud-client-kubeconfig": k.path, "client-ca-file": []string{localCA},
		"secure-port": i.Ports.Secure, "health-port": i.Ports.Health, "pool-port": i.Ports.Pool,
		"data-dir": hubData, "etc-dir": etc, "enable-coordinator": true,
	}
	if k.source == nil {
		flags["client-ca-file"] = []string{localCA, cmp.Or(i.ClientCA, k.path)}
		if k.conf.Embedded() {
			flags["cloud-client-cert-file"] = k.certFile // the kubelet keeps its key there as well
		}
	}
	if len(n.Coordinators) > 0 {
		flags["coordinator-server"] = n.Coordinators
	}
	if i.Pods {
		flags["pods-address"] = contract.PodsAddress
	}
	if m.on() {
		flags["images-port"], flags["images-root"] = i.Ports.Images, m.content
	}
	if i.PoolAddress != "" {
		flags["pool-address"] = i.PoolAddress
	}
	if i.Coordinator {
		flags["enrol-coordinator-dir"], flags["enrol-coordinator-host"], flags["coordinator-replica"] = forPod, n.Addresses,
			contract.ManagedReplica
	}
	if root := i.Host.Root; root != "/" { // of tests: the hub is on this machine, its files are not
		for name, v := range flags {
			switch v := v.(type) {
			case string:
				if strings.HasPrefix(v, "/") {
					flags[name] = i.Host.at(v)
				}
			case []string:
				for n, path := range v {
					if strings.HasPrefix(path, "/") {
						v[n] = i.Host.at(path)
					}
				}
			}
		}
	}
	return flags
}

// files are all that Join writes before the hub is started: its program and its unit first.
func (i *Installer) files(k *kubelet, n *cluster.Node, m *mirror) ([]file, error) {
	program, err := os.ReadFile(i.Hub)
	if err != nil {
		return nil, fmt.Errorf("--hub-binary: %w", err)
	}
	config, err := hubText(i.hubFlags(k, n, m))
	if err != nil {
		return nil, err
	}
	conf, err := k.forHub(i.Ports.Secure)
	if err != nil {
		return nil, err
	}
	writes := []string{hubData, etc}
	if i.Coordinator {
		writes = append(writes, "-"+forPod)
	}
	all := []file{
		{programOf(program), 0o755, program},
		{hubUnit, 0o644, host.HubUnit(hubProgram+" --config="+hubConfig, proxyEnv, writes, i.Pods)},
		{localCA, 0o644, k.localCA},
		{localPair, 0o600, k.local},
		{kubeletConf, 0o600, conf},
		{hubConfig, 0o600, config},
	}
	if https, no := k.environment(); https != "" && k.conf.Proxy == nil {
		all = append(all, file{
			proxyEnv, 0o600, fmt.Appendf(nil, "HTTPS_PROXY=%s\nNO_PROXY=%s\n", host.Quoted(https), host.Quoted(no)),
		})
	}
	if i.Token != "" {
		all = append(all, file{tokenFile, 0o600, []byte(i.Token + "\n")})
	}
	return all, nil
}

// hubText is the file of a hub's configuration.
func hubText(flags map[string]any) ([]byte, error) {
	text, err := yaml.Marshal(flags)
	return append([]byte("# Written by weir node join: the flags of weir-hub --help.\n"), text...), err
}

// beside is a configuration with what its owner has put beside it, which wins.
func (i *Installer) beside(flags map[string]any) ([]byte, error) {
	all := maps.Clone(flags)
	entries, err := os.ReadDir(i.Host.at(hubConfig + ".d"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".yaml" {
			continue
		}
		text, err := i.Host.read(filepath.Join(hubConfig+".d", e.Name()))
		if err != nil {
			return nil, err
		}
		var more map[string]any
		if err := yaml.Unmarshal(text, &more); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		maps.Copy(all, more)
	}
	return hubText(all)
}

// mirror is what a join would have containerd ask first.
type mirror struct {
	images
	hosts   file   // as it is to be
	theirs  string // one of somebody's leads to the hub, and there is none to be
	content string // containerd's content store
	why     string // there is none; "": there is one
}

func (m *mirror) on() bool { return m != nil && m.why == "" }

// file is by what containerd is led.
func (m *mirror) file() string { return cmp.Or(m.Hosts, m.theirs) }

// folders are those that Join, systemd or the hub make, beside those of files.
func (i *Installer) folders() []string {
	all := []string{hubData, units + "/multi-user.target.wants", volatile, lasting}
	if i.Coordinator {
		all = append(all, forPod)
	}
	return all
}
