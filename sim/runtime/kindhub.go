package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/parts"
)

// Where weir node join puts things, and where its users put theirs.
const (
	hubService      = "weir-hub"
	hubData         = "/var/lib/weir-hub"
	hubEtc          = "/etc/weir"
	hubAuthority    = hubEtc + "/node-authority.crt"
	hubFlags        = hubEtc + "/hub.yaml.d/50-testbed.yaml"
	hubCertificates = hubEtc + "/testbed" // certificates that hubFlags name
	hubOutput       = unitFolder + "weir-hub.service.d/50-testbed.conf"
)

// joining are flags of a hub while its node joins: it is in no pool yet, whose coordinator does not run, and there are
// no pods yet that could not trust it.
const joining = "enable-coordinator: false\npods-wait: 1s\n"

// outputText does not restart a hub that ends by itself: the testbed is there to see that.
const outputText = `# Written by the testbed.
[Service]
Restart=no
StandardOutput=append:%[1]s
StandardError=append:%[1]s
`

// hub is what a node with a hub is given.
type hub struct {
	program string // weir-hub
	dir     string // of certificates, on this machine
	flags   string // that the scenario gives it beside those of weir node join
	log     string
	data    string // what it holds when it begins, on this machine
}

// hub implements ground.
func (s *kindSite) hub(l parts.Launch, c parts.HubConfig) (Part, error) {
	m := s.byNode[c.NodeName]
	if m == nil {
		return nil, fmt.Errorf("there is no machine for node %q", c.NodeName)
	}
	probe := parts.HubProbe(l.Name, c)
	link, err := url.Parse(c.CloudServers[0])
	if err != nil {
		return nil, err
	}
	m.link = link.Host
	// weir node join finds these out.
	c.NodeName, c.NodePool, c.BindAddress, c.SecurePort, c.DataDir = "", "", "", 0, ""
	c.CloudServers, c.CloudClientCert, c.ClientCAFile = nil, "", ""
	// The testbed's clients are on another machine.
	c.Health = net.JoinHostPort("0.0.0.0", strconv.Itoa(contract.HubHealthPort))
	c.Flags = maps.Clone(c.Flags)
	if c.Flags == nil {
		c.Flags = parts.Flags{}
	}
	c.Flags["tls-hosts"], c.Flags["pods-wait"] = []string{m.address}, "1s"
	text, err := c.Text()
	if err != nil {
		return nil, err
	}
	m.hub = &hub{
		program: l.Path, dir: l.Dir, flags: strings.ReplaceAll(string(text), l.Dir, hubCertificates), log: l.LogFile,
		data: l.Data,
	}
	return &kindPart{
		prober: probe, life: hubLife{m, s.image}, machine: m, name: l.Name, command: parts.HubCommand, log: l.LogFile,
	}, nil
}

// joinPools leads the kubelets of all nodes with a hub to it, by what their owners type.
func (s *kindSite) joinPools(ctx context.Context) error {
	services := s.cloud.Client().CoreV1().Services(contract.ManagerNamespace)
	for _, p := range s.topology.Pools {
		if p.Mode == Stock {
			continue
		}
		// What weir-manager would make of the pool, as long as its nodes join. Scenarios have weir-manager later, or not at
		// all.
		name := contract.LeaderHubPrefix + p.Name
		told := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
		}
		if _, err := services.Create(ctx, told, metav1.CreateOptions{}); err != nil {
			return err
		}
		defer func() { _ = services.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) }()
	}
	return s.each(ctx, func(ctx context.Context, m *machine) error {
		if m.hub == nil {
			return nil
		}
		return s.join(ctx, m)
	})
}

func (s *kindSite) join(ctx context.Context, m *machine) error {
	if err := m.put(ctx, map[string]string{hubFlags: joining, hubOutput: fmt.Sprintf(outputText, m.hub.log)}); err != nil {
		return err
	}
	weir := s.commands[parts.OperatorCommand]
	if _, err := m.Exec(ctx, weir, "node", "join", "--pool="+m.pool.Name, "--hub-binary="+m.hub.program,
		"--coordinator=false"); err != nil {
		return err
	}
	ca, err := m.Exec(ctx, "cat", hubAuthority)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(m.hub.dir, parts.NodeAuthorityFile), []byte(ca+"\n"), 0o600); err != nil {
		return err
	}
	err = s.wait(ctx, "pods of "+m.node+" are led to its hub", func() (bool, string, error) {
		out, err := m.Exec(ctx, "curl", "-sf",
			fmt.Sprintf("http://127.0.0.1:%d%s", contract.HubHealthPort, contract.StatusPath))
		return strings.Contains(strings.ReplaceAll(out, " ", ""), `"led":true`), out, err
	})
	if err != nil {
		return err
	}
	if err := m.CopyTo(ctx, m.hub.dir+"/.", hubCertificates); err != nil {
		return err
	}
	if err := m.CopyTo(ctx, m.hub.data+"/.", hubData); err != nil { // what it was given before
		return err
	}
	files := map[string]string{hubFlags: m.hub.flags}
	switch pool, err := os.ReadFile(filepath.Join(m.hub.dir, parts.PoolCAFile)); {
	case err == nil:
		files[filepath.Join(hubEtc, parts.PoolCAFile)] = string(pool)
	case !errors.Is(err, fs.ErrNotExist): // without it the cloud tells it whom to trust
		return err
	}
	return m.put(ctx, files)
}

// hubLife is the systemd unit of a node's hub.
type hubLife struct {
	*machine
	image string
}

func (h hubLife) begin(ctx context.Context) error {
	on, err := h.Running(ctx)
	if err != nil {
		return err
	}
	if !on { // the unit starts with the machine
		return h.Container.Start(ctx)
	}
	_, err = h.Exec(ctx, "systemctl", "start", hubService)
	return err
}

func (h hubLife) end(ctx context.Context) error {
	_, err := h.Exec(ctx, "systemctl", "stop", hubService)
	return err
}

const emptyData = "rm -rf " + hubData + "/*"

func (h hubLife) wipe(ctx context.Context) error {
	on, err := h.Running(ctx)
	if err != nil {
		return err
	}
	if on {
		_, err = h.Exec(ctx, "sh", "-c", emptyData)
		return err
	}
	_, err = docker.Run(ctx, "run", "--rm", "--network=none", "--volumes-from", string(h.Container), "--entrypoint", "sh",
		h.image, "-c", emptyData)
	return err
}
