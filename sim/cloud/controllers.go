package cloud

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/weir-edge/weir/sim/testca"
)

// Ports that people expect controllers on.
const (
	controllerManagerPort = 10257
	schedulerPort         = 10259
)

// Command is how to run a controller beside the apiserver.
type Command struct {
	Name, Path string
	Args       []string
	Dir        string // of its files
	LogFile    string
	URL        string            // of /healthz and /metrics
	Transport  http.RoundTripper // with a credential that may read those
}

// ControllerManager is the stock kube-controller-manager with the flags that kubeadm gives it, and those of other
// timers.
func (c *Cloud) ControllerManager(t Timers) (Command, error) {
	cmd, err := c.controller(KubeControllerManager, "system:kube-controller-manager", controllerManagerPort)
	if err != nil {
		return cmd, err
	}
	dir, err := c.config.Spawner.Scratch("cloud")
	if err != nil {
		return cmd, err
	}
	cmd.Args = append(cmd.Args,
		"--use-service-account-credentials=true",
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--root-ca-file="+filepath.Join(dir, "ca.crt"),
		"--service-account-private-key-file="+filepath.Join(dir, "service-accounts.key"),
	)
	cmd.Args = append(cmd.Args, t.ControllerManagerFlags()...)
	return cmd, nil
}

// Scheduler is the stock kube-scheduler with the flags that kubeadm gives it.
func (c *Cloud) Scheduler() (Command, error) {
	return c.controller(KubeScheduler, "system:kube-scheduler", schedulerPort)
}

// controller writes the files of a controller with an identity of its own.
func (c *Cloud) controller(name, user string, preferred int) (cmd Command, err error) {
	path := c.config.Binaries[name]
	if path == "" {
		return cmd, fmt.Errorf("prepare %s: its path is required, see Find", name)
	}
	dir, err := c.config.Spawner.Scratch("cloud", name)
	if err != nil {
		return cmd, err
	}
	kubeconfig, err := c.kubeconfig(dir, user)
	if err != nil {
		return cmd, err
	}
	serving, err := c.ca.Issue(testca.Request{CommonName: name, Hosts: []string{c.config.Address, "localhost"}})
	if err != nil {
		return cmd, err
	}
	cert, key, err := serving.Write(dir, "serving")
	if err != nil {
		return cmd, err
	}
	admin, err := tls.X509KeyPair(c.admin.CertData, c.admin.KeyData)
	if err != nil {
		return cmd, fmt.Errorf("prepare %s: %w", name, err)
	}
	port := strconv.Itoa(preferred) // the cloud has an address of its own, so nobody else is there
	return Command{
		Name: name, Path: path, Dir: dir,
		LogFile: filepath.Join(c.config.LogDir, name+".log"),
		URL:     "https://" + net.JoinHostPort(c.config.Address, port),
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{
				RootCAs: c.ca.Pool(), Certificates: []tls.Certificate{admin}, MinVersion: tls.VersionTLS12,
			},
		},
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" +
				kubeconfig,
			"--bind-address=" + c.config.Address, "--secure-port=" + port,
			"--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
			"--client-ca-file=" + filepath.Join(filepath.Dir(dir), "ca.crt"),
			"--leader-elect=true",
		},
	}, nil
}

// kubeconfig writes one for a user of the cluster.
func (c *Cloud) kubeconfig(dir, user string, groups ...string) (string, error) {
	pair, err := c.ca.Issue(testca.Request{CommonName: user, Organizations: groups, Client: true})
	if err != nil {
		return "", err
	}
	data, err := testca.Kubeconfig(c.URL(), c.ca.CertPEM(), pair, "")
	if err != nil {
		return "", err
	}
	return testca.WriteFile(dir, "kubeconfig", data)
}

// Kubeconfig writes a kubeconfig for a user of the cluster below the cloud's files and returns its path.
func (c *Cloud) Kubeconfig(user string, groups ...string) (string, error) {
	dir, err := c.config.Spawner.Scratch("cloud", "users", user)
	if err != nil {
		return "", err
	}
	return c.kubeconfig(dir, user, groups...)
}
