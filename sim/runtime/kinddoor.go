package runtime

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	serviceAddress = "10.96.0.1" // of Service kubernetes, by which pods call the API
	hubService     = "weir-hub"
	doorService    = "weir-door"
	doorScript     = "/usr/local/bin/weir-door"
	unitFolder     = "/etc/systemd/system/"
	hubData        = "/var/lib/weir/hub"
	hubKey         = "/etc/weir/store.key"
)

// doorRules make one address the node's door to the API for all that runs on it: kube-proxy, the CNI, CoreDNS, other pods. They
// stand before those of kube-proxy, which would send pods to the apiserver itself.
const doorRules = `#!/bin/sh
# Where Service kubernetes leads on this node, and what no one on it may do. Written by the testbed.
exec nft -f - <<END
table inet weir
delete table inet weir
table inet weir {
	chain pods { type nat hook prerouting priority -110; ip daddr %[1]s tcp dport 443 dnat ip to %[2]s; }
	chain node { type nat hook output priority -110; ip daddr %[1]s tcp dport 443 dnat ip to %[2]s; }
%[3]s}
END
`

// wallRules refuse every way to an apiserver that is not this node's: by IPv4 and IPv6, whatever its address.
const wallRules = `	chain wall { type filter hook output priority 0; oifname != "lo" tcp dport %[1]d reject with tcp reset; }
	chain fence { type filter hook forward priority 0; tcp dport %[1]d reject with tcp reset; }
`

const doorUnit = `[Unit]
Description=door of this node to the Kubernetes API
Before=kubelet.service weir-hub.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + doorScript + `

[Install]
WantedBy=multi-user.target
`

// hangUp ends what joined the cluster straight, before the wall is there: it would keep the apiserver from hearing of it.
const hangUp = `systemctl stop kubelet; pkill -x kube-proxy; for i in $(seq 50); do [ -z "$(ss -Htn dport = :6443)" ] && break; sleep 0.1; done; `

// hubUnit is the systemd unit of a hub. It does not restart a hub that ends by itself, as one of an installation would: the
// testbed is there to see that.
type hubUnit struct{ command, config, log string }

func (u hubUnit) String() string {
	return fmt.Sprintf(`[Unit]
Description=weir-hub, the door of this node to the Kubernetes API
After=%s.service
Before=kubelet.service

[Service]
ExecStart=%s --config=%s
StandardOutput=append:%s
StandardError=append:%[4]s

[Install]
WantedBy=multi-user.target
`, doorService, u.command, u.config, u.log)
}

// installDoor gives a node its one way to the API and sends its kubelet there.
func (s *kindSite) installDoor(ctx context.Context, m *machine) error {
	door, wall := net.JoinHostPort(s.control.address, strconv.Itoa(apiPort)), ""
	kubelet := "https://" + serviceAddress + ":443"
	if !m.atCloud() {
		wall = fmt.Sprintf(wallRules, apiPort)
		if m.pool.Mode == Stock {
			link, err := s.stockDoor(m)
			if err != nil {
				return err
			}
			door = link
		} else {
			door = net.JoinHostPort(m.address, strconv.Itoa(contract.HubSecurePort))
			kubelet = "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(contract.HubSecurePort))
		}
	}
	files := map[string]string{
		doorScript:                            fmt.Sprintf(doorRules, serviceAddress, door, wall),
		unitFolder + doorService + ".service": doorUnit,
	}
	if m.hub.command != "" {
		files[unitFolder+hubService+".service"] = m.hub.String()
	}
	for path, content := range files {
		if err := m.Write(ctx, path, strings.NewReader(content)); err != nil {
			return err
		}
	}
	script := "chmod 755 " + doorScript + " && systemctl daemon-reload && systemctl enable --now --quiet " + doorService
	if !m.atCloud() {
		script = hangUp + script + " && sed -i 's|server: https://.*|server: " + kubelet + "|' /etc/kubernetes/kubelet.conf && systemctl start kubelet"
	}
	_, err := m.Exec(ctx, "sh", "-c", script)
	return err
}

// stockDoor is the near end of a node's link for all that runs on it but the testbed's clients.
func (s *kindSite) stockDoor(m *machine) (string, error) {
	e, err := s.Endpoint(m.node, ClassNode)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return "", err
	}
	return u.Host, nil
}

// tryAll prints the addresses that could be connected to: curl ends with 6, 7 or 28 where there is no such name, the connection
// is refused, or nobody answers.
const tryAll = `for a in "$@"; do curl -ks -m 2 -o /dev/null "https://$a/version"; case $? in 6 | 7 | 28) ;; *) echo "$a" ;; esac; done`

// CheckWalls tries to reach the cloud's API from every worker, by every address that the control plane and this machine have,
// and looks whether the apiserver has a connection from one. What is reached is an error.
func (s *kindSite) CheckWalls(ctx context.Context) error {
	targets, err := s.apiAddresses(ctx)
	if err != nil {
		return err
	}
	err = s.each(ctx, func(ctx context.Context, m *machine) error {
		if m.atCloud() {
			return nil
		}
		out, err := m.Exec(ctx, append([]string{"sh", "-c", tryAll, "-"}, targets...)...)
		if err == nil && out != "" {
			err = fmt.Errorf("it reaches the cloud's API past the link, at %s", strings.Fields(out))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("check that nothing passes the link: %w", err)
	}
	return s.checkConnections(ctx)
}

// apiAddresses are all "host:port" at which the apiserver might be found.
func (s *kindSite) apiAddresses(ctx context.Context) ([]string, error) {
	out, err := s.control.Exec(ctx, "sh", "-c", `ip -o addr show scope global; ip -6 -o addr show scope link`)
	if err != nil {
		return nil, err
	}
	targets := []string{net.JoinHostPort(string(s.control.Container), strconv.Itoa(apiPort))}
	for line := range strings.Lines(out) {
		f := strings.Fields(line) // 2: eth0    inet 172.18.0.2/16 …
		if len(f) < 4 {
			continue
		}
		host, _, _ := strings.Cut(f[3], "/")
		if f[2] == "inet6" && strings.HasPrefix(host, "fe80") {
			host += "%25eth0"
		}
		targets = append(targets, net.JoinHostPort(host, strconv.Itoa(apiPort)))
	}
	published, err := url.Parse(s.Admin().Host) // on this machine
	if err != nil {
		return nil, err
	}
	return append(targets, net.JoinHostPort(s.run.Network.Gateway, published.Port()), net.JoinHostPort(s.run.Network.Gateway, strconv.Itoa(apiPort))), nil
}

// checkConnections reads who is connected to the apiserver.
func (s *kindSite) checkConnections(ctx context.Context) error {
	out, err := s.control.Exec(ctx, "cat", "/proc/net/tcp", "/proc/net/tcp6")
	if err != nil {
		return err
	}
	peers := connectedTo(out, apiPort)
	for _, m := range s.workers() {
		if peers[m.address] && !m.atCloud() {
			return fmt.Errorf("check that nothing passes the link: node %s is connected to the apiserver", m.node)
		}
	}
	return nil
}
