package install

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install/cluster"
	"github.com/weir-edge/weir/impl/install/unit"
)

// memoryMax bounds a hub whatever happens. With 1000 slices of 100 endpoints it has 24 MB, and 20 lists of 5000 of them
// at once add 18 MB (reports/bench): this is several times as much, so that only a hub that leaks meets it.
const memoryMax = "256M"

// unitText is the hub's unit. It is root, since the kubelet's key and the folders of its pool's coordinator are root's;
// and it has no capability, and two places to write.
const unitText = `# Written by weir node join, taken away by weir node leave.
[Unit]
Description=weir-hub, the door of this node to the Kubernetes API
Documentation=https://github.com/weir-edge/weir
Wants=network-online.target
After=network-online.target
Before=kubelet.service
StartLimitIntervalSec=0

[Service]
Type=notify
EnvironmentFile=-` + proxyEnv + `
%[1]sExecStart=` + hubProgram + ` --config=` + hubConfig + `
Restart=always
RestartSec=1
TimeoutStartSec=60
OOMScoreAdjust=-999
MemoryMax=` + memoryMax + `
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=` + hubData + ` ` + etc + `%[2]s
ProtectHome=yes
PrivateTmp=yes
RuntimeDirectory=weir-hub
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`

// giveAddress gives the machine the address at which pods reach the hub. It is the one thing for which root's
// capabilities are needed. A hub that runs without it leads no pod.
const giveAddress = `ExecStartPre=-+/bin/sh -c "exec ip address replace ` + contract.PodsAddress +
	`/32 dev lo scope host"
`

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
	also := ""
	if i.Coordinator {
		also = " -" + forPod
	}
	address := ""
	if i.Pods {
		address = giveAddress
	}
	all := []file{
		{programOf(program), 0o755, program},
		{hubUnit, 0o644, fmt.Appendf(nil, unitText, address, also)},
		{localCA, 0o644, k.localCA},
		{localPair, 0o600, k.local},
		{kubeletConf, 0o600, conf},
		{hubConfig, 0o600, config},
	}
	if https, no := k.environment(); https != "" && k.conf.Proxy == nil {
		all = append(all, file{
			proxyEnv, 0o600, fmt.Appendf(nil, "HTTPS_PROXY=%s\nNO_PROXY=%s\n", unit.Quoted(https), unit.Quoted(no)),
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

// folders are those that Join, systemd or the hub make, beside those of files.
func (i *Installer) folders() []string {
	all := []string{hubData, units + "/multi-user.target.wants", volatile, lasting}
	if i.Coordinator {
		all = append(all, forPod)
	}
	return all
}
