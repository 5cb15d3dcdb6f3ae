package host

import (
	"fmt"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// memoryMax bounds a hub whatever happens. With 1000 slices of 100 endpoints it has 24 MB, and 20 lists of 5000 of them
// at once add 18 MB (reports/bench): this is several times as much, so that only a hub that leaks meets it.
const memoryMax = "256M"

// KeepSockets is the line of a unit by which systemd keeps the two sockets of a hub while it restarts, that of the node
// and that of pods: kubelets wait for the next hub instead of being refused. By Type=notify systemd takes them from the
// hub's own process alone (NotifyAccess=main). A hub that is stopped loses them: FileDescriptorStorePreserve=no is the
// default. StartLimitIntervalSec=0 lets a hub that cannot start try for ever, and nobody waits for that one: a hub that
// ends before it is ready leaves no socket behind, see process.Sockets.
const KeepSockets = "FileDescriptorStoreMax=2\n"

// hubText is the hub's unit. It is root, since the kubelet's key and the folders of its pool's coordinator are root's;
// and it has no capability, and two places to write.
const hubText = `# Written by weir node join, taken away by weir node leave.
[Unit]
Description=weir-hub, the door of this node to the Kubernetes API
Documentation=https://github.com/weir-edge/weir
Wants=network-online.target
After=network-online.target
Before=kubelet.service
StartLimitIntervalSec=0

[Service]
Type=notify
` + KeepSockets + `EnvironmentFile=-%[1]s
%[2]sExecStart=%[3]s
Restart=always
RestartSec=1
TimeoutStartSec=60
OOMScoreAdjust=-999
MemoryMax=` + memoryMax + `
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=%[4]s
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

// HubUnit is the unit of a hub: by which command, with which file of variables, where it writes, and whether it gives
// the machine the address for pods. A path to write with a minus may be missing.
func HubUnit(command, variables string, writes []string, pods bool) []byte {
	address := ""
	if pods {
		address = giveAddress
	}
	return fmt.Appendf(nil, hubText, variables, address, command, strings.Join(writes, " "))
}
