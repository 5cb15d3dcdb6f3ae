package cloud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/audit"
	"github.com/weir-edge/weir/sim/frames"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	// serviceRange holds the cluster IPs of Services.
	serviceRange = "10.96.0.0/16"
	issuer       = "https://kubernetes.default.svc"
	// readyPatience is far more than the some five seconds that a start takes on an idle machine: beside many others some
	// minutes were too few.
	readyPatience = 10 * time.Minute
	poll          = 50 * time.Millisecond
	tellEvery     = 3 * time.Second
)

// freePort returns the preferred port if it is free on the address, else another one.
func freePort(ctx context.Context, address string, preferred int) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(preferred)))
	if err != nil {
		l, err = lc.Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	}
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// apiserverArgs writes the files that the apiserver needs and returns its flags.
func (c *Cloud) apiserverArgs(dir string, hosts []string) ([]string, error) {
	serving, err := c.ca.Issue(testca.Request{CommonName: "kube-apiserver", Hosts: append([]string{
		c.config.Address, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1",
	}, hosts...)})
	if err != nil {
		return nil, err
	}
	certFile, keyFile, err := serving.Write(dir, "apiserver")
	if err != nil {
		return nil, err
	}
	caFile, err := testca.WriteFile(dir, "ca.crt", c.ca.CertPEM())
	if err != nil {
		return nil, err
	}
	signing, err := testca.NewSigningKey()
	c.signing = signing
	if err != nil {
		return nil, err
	}
	privateFile, err := testca.WriteFile(dir, "service-accounts.key", signing.PrivatePEM)
	if err != nil {
		return nil, err
	}
	publicFile, err := testca.WriteFile(dir, "service-accounts.pub", signing.PublicPEM)
	if err != nil {
		return nil, err
	}
	policyFile, err := testca.WriteFile(dir, "audit-policy.yaml", []byte(audit.Policy))
	if err != nil {
		return nil, err
	}
	return append([]string{
		"--audit-policy-file=" + policyFile,
		"--audit-log-path=" + c.AuditLog(),
		"--etcd-servers=" + c.etcd.url,
		"--bind-address=" + c.config.Address,
		"--secure-port=" + strconv.Itoa(c.port),
		"--advertise-address=" + c.config.Address,
		"--endpoint-reconciler-type=none", // an Endpoints object of the loopback address would be refused
		"--cert-dir=" + filepath.Join(dir, "generated"),
		"--tls-cert-file=" + certFile,
		"--tls-private-key-file=" + keyFile,
		"--client-ca-file=" + caFile,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + publicFile,
		"--service-account-signing-key-file=" + privateFile,
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--allow-privileged=true", // as kubeadm has it
	}, c.config.Args...), nil
}

// StartAPIServer starts the apiserver, at the same address each time, and waits until it is ready.
func (c *Cloud) StartAPIServer(ctx context.Context) error {
	c.starting.Lock()
	defer c.starting.Unlock()
	if p := c.APIServer(); p != nil && p.Running() {
		return errors.New("start kube-apiserver: it is running")
	}
	var env []string
	if c.config.Frames {
		env = []string{frames.Debug}
	}
	p, err := c.config.Spawner.Start(proc.Spec{
		Name:    KubeAPIServer,
		Env:     env,
		Path:    c.config.Binaries[KubeAPIServer],
		Args:    c.args,
		LogFile: c.APIServerLog(),
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.apiserver = p
	c.mu.Unlock()
	if err := c.waitReady(ctx, p); err != nil {
		p.Kill()
		return err
	}
	return nil
}

// AuditLog is the file in which the apiserver notes what the parts of Weir ask, and by which grant; see package audit.
func (c *Cloud) AuditLog() string { return filepath.Join(c.config.LogDir, audit.File) }

// APIServerLog is the apiserver's log file.
func (c *Cloud) APIServerLog() string { return filepath.Join(c.config.LogDir, "kube-apiserver.log") }

// APIServer is the process as it runs now, or ran last: to stop, kill, freeze or measure it.
func (c *Cloud) APIServer() *proc.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiserver
}

func (c *Cloud) waitReady(ctx context.Context, p *proc.Process) error {
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(c.admin))
	if err != nil {
		return fmt.Errorf("wait for kube-apiserver: %w", err)
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	begin, told := time.Now(), time.Now()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := probe(ctx, client, c.URL()+"/readyz")
		if err == nil {
			c.config.Progress(fmt.Sprintf("kube-apiserver is ready after %s", time.Since(begin).Round(100*time.Millisecond)))
			return nil
		}
		if time.Since(told) >= tellEvery {
			c.config.Progress(fmt.Sprintf("waiting for kube-apiserver, %s", time.Since(begin).Round(time.Second)))
			told = time.Now()
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return fmt.Errorf("kube-apiserver ended before it was ready: %w", p.Err())
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready after %s: %w: %w\n  %s", time.Since(begin).Round(time.Second),
				ctx.Err(), err, p.Tail(2048))
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}
