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
	serviceAddress = "10.96.0.1" // of Service kubernetes, by which pods call the API that are not led to a hub
	doorService    = "weir-door"
	doorScript     = "/usr/local/bin/weir-door"
	unitFolder     = "/etc/systemd/system/"
	wallPorts      = "1000-1023" // calls from these are not led to the link: CheckWalls meets the wall by them
)

// doorRules put the link where the cloud is, for all that runs on the node: at the address of the apiserver, and at
// that of Service kubernetes, before the rules of kube-proxy, which would send pods to the apiserver itself. They
// refuse every way to an apiserver that is not this node's: by IPv4 and IPv6, whatever its address. A hub listens on
// its machine only; the testbed's clients are led there from the machine's address.
const doorRules = `#!/bin/sh
# Where the cloud is for this node, and what no one on it may do. Written by the testbed.
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
exec nft -f - <<END
table inet weir
delete table inet weir
table inet weir {
	chain pods {
		type nat hook prerouting priority -110;
		ip daddr %[1]s tcp dport 443 dnat ip to %[3]s
		ip daddr %[2]s tcp dport %[4]d dnat ip to %[3]s
		ip daddr %[5]s tcp dport %[6]d dnat ip to 127.0.0.1
	}
	chain node {
		type nat hook output priority -110;
		ip daddr %[1]s tcp dport 443 dnat ip to %[3]s
		ip daddr %[2]s tcp dport %[4]d tcp sport != ` + wallPorts + ` dnat ip to %[3]s
	}
	chain wall { type filter hook output priority 0; oifname != "lo" tcp dport %[4]d reject with tcp reset; }
	chain fence { type filter hook forward priority 0; tcp dport %[4]d reject with tcp reset; }
}
END
`

const doorUnit = `[Unit]
Description=link of this node to the cloud
Before=kubelet.service weir-hub.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + doorScript + `

[Install]
WantedBy=multi-user.target
`

// Scripts of installDoor. What joined the cluster straight hangs up first: it would keep the apiserver from hearing of
// the wall.
const (
	stopStock = `systemctl stop kubelet; pkill -x kube-proxy; `
	// a scenario begins with hubs that hold nothing of what their pool shares.
	stopHub  = `systemctl stop ` + hubService + ` && rm -rf ` + hubData + `/relays && `
	openDoor = `for i in $(seq 50); do [ -z "$(ss -Htn dport = :6443)" ] && break; sleep 0.1; done
chmod 755 ` + doorScript + ` && systemctl daemon-reload && systemctl enable --now --quiet ` + doorService
	startStock = ` && systemctl start kubelet`
)

// installDoor gives a node its one way to the API.
func (s *kindSite) installDoor(ctx context.Context, m *machine) error {
	script := stopHub + openDoor
	if m.hub == nil {
		link, err := s.stockDoor(m)
		if err != nil {
			return err
		}
		m.link, script = link, stopStock+openDoor+startStock
	}
	err := m.put(ctx, map[string]string{
		doorScript: fmt.Sprintf(doorRules, serviceAddress, s.control.address, m.link, apiPort,
			m.address, contract.HubSecurePort),
		unitFolder + doorService + ".service": doorUnit,
	})
	if err == nil {
		_, err = m.Exec(ctx, "sh", "-c", script)
	}
	return err
}

// put writes files, in folders that need not be there.
func (m *machine) put(ctx context.Context, files map[string]string) error {
	for path, content := range files {
		if err := m.Feed(ctx, strings.NewReader(content), "install", "-D", "-m", "644", "/dev/stdin", path); err != nil {
			return err
		}
	}
	return nil
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

// tryAll prints the addresses that could be connected to: curl ends with 6, 7 or 28 where there is no such name, the
// connection is refused, or nobody answers.
const tryAll = `for a in "$@"; do curl -ks -m 2 --local-port ` + wallPorts +
	` -o /dev/null "https://$a/version"; case $? in 6 | 7 | 28) ;; *) echo "$a" ;; esac; done`

// CheckWalls tries to reach the cloud's API from every worker, by every address that the control plane and this machine
// have, and looks whether the apiserver has a connection from one. What is reached is an error.
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
	return append(targets, net.JoinHostPort(s.run.Network.Gateway, published.Port()),
		net.JoinHostPort(s.run.Network.Gateway, strconv.Itoa(apiPort))), nil
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
