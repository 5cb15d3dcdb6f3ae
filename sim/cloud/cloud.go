package cloud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/loopback"
	"github.com/weir-edge/weir/sim/testca"
)

// preferredPort is what people expect an apiserver on.
const preferredPort = 6443

// Config of a cloud.
type Config struct {
	Spawner  *proc.Spawner // required; also owns the data
	Binaries Binaries      // required, with KubeAPIServer; see Find
	LogDir   string        // required: folder of log files

	Address string   // IP address to listen on; default: a loopback address that no other run uses
	Port    int      // default: 6443 if it is free, else any
	Hosts   []string // further addresses that clients reach the apiserver by (the near ends of links)
	Args    []string // further flags of the apiserver
	Frames  bool     // it logs the frames of HTTP/2, for package frames
	Keys    bool     // it asks a key service, so that SetReady can make it say that it is not ready

	Progress func(string) // may be nil
}

// Validate tells what is wrong with a Config.
func (c Config) Validate() error {
	switch {
	case c.Spawner == nil:
		return errors.New("cloud: a spawner is required")
	case c.Binaries[KubeAPIServer] == "":
		return fmt.Errorf("cloud: the path of %s is required, see Find", KubeAPIServer)
	case c.LogDir == "":
		return errors.New("cloud: a folder for logs is required")
	case c.Address != "" && net.ParseIP(c.Address) == nil:
		return fmt.Errorf("cloud: address %q: want an IP address", c.Address)
	}
	return nil
}

// Cloud is a running control plane.
type Cloud struct {
	config  Config
	port    int
	ca      *testca.Authority
	signing *testca.SigningKey // of tokens
	keys    *keys              // nil: it asks none
	admin   *rest.Config
	client  kubernetes.Interface
	etcd    *etcd
	block   *loopback.Block // nil when the caller gave an address
	args    []string
	dir     string // of the apiserver's files

	starting  sync.Mutex // held by one start at a time
	mu        sync.Mutex
	apiserver *proc.Process
}

// Start starts etcd and the apiserver and installs what the manifests say. The caller ends it with Close.
func Start(ctx context.Context, config Config) (_ *Cloud, err error) {
	if config.Progress == nil {
		config.Progress = func(string) {}
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Cloud{config: config, port: config.Port}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if c.config.Address == "" {
		if c.block, err = loopback.Reserve(ctx); err != nil {
			return nil, err
		}
		if c.config.Address, err = c.block.Addr(1); err != nil {
			return nil, err
		}
	}
	if c.port == 0 {
		if c.port, err = freePort(ctx, c.config.Address, preferredPort); err != nil {
			return nil, err
		}
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if err := c.etcd.start(ctx); err != nil {
		return nil, err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare makes folders, the authority, the administrator's credential and the apiserver's flags.
func (c *Cloud) prepare() error {
	if err := os.MkdirAll(c.config.LogDir, 0o755); err != nil {
		return fmt.Errorf("create folder of logs: %w", err)
	}
	data, err := c.config.Spawner.Scratch("etcd")
	if err != nil {
		return err
	}
	dir, err := c.config.Spawner.Scratch("cloud")
	if err != nil {
		return err
	}
	c.dir = dir
	if c.etcd, err = newEtcd(data, c.config.LogDir+"/etcd.log"); err != nil {
		return err
	}
	if c.ca, err = testca.NewAuthority("weir-testbed-cloud"); err != nil {
		return err
	}
	admin, err := c.ca.Issue(testca.Request{
		CommonName: "testbed-admin", Organizations: []string{"system:masters"}, Client: true,
	})
	if err != nil {
		return err
	}
	c.admin = &rest.Config{
		Host:            c.URL(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.CertPEM(), CertData: admin.CertPEM, KeyData: admin.KeyPEM},
		QPS:             -1,                // the workload has its own pace
		WarningHandler:  rest.NoWarnings{}, // that Endpoints are deprecated is known
	}
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return fmt.Errorf("create administrator's client: %w", err)
	}
	if c.args, err = c.apiserverArgs(dir, c.config.Hosts); err != nil || !c.config.Keys {
		return err
	}
	var flags []string
	c.keys, flags, err = startKeys(dir)
	c.args = append(c.args, flags...)
	return err
}

// Addr is "host:port" of the apiserver.
func (c *Cloud) Addr() string { return net.JoinHostPort(c.config.Address, strconv.Itoa(c.port)) }

// URL is the base of the apiserver, without a link in between.
func (c *Cloud) URL() string { return "https://" + c.Addr() }

// CA is the cluster's authority: it signed the apiserver's certificate and signs those of nodes.
func (c *Cloud) CA() *testca.Authority { return c.ca }

// RESTConfig is the administrator's (system:masters), for the testbed itself and for nobody else.
func (c *Cloud) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Client is a client with RESTConfig.
func (c *Cloud) Client() kubernetes.Interface { return c.client }

// Close stops the apiserver and etcd. Their data goes with the Spawner's scratch directory. It may be called twice, and
// always succeeds; it has the form of io.Closer.
func (c *Cloud) Close() error {
	if p := c.APIServer(); p != nil {
		p.Kill() // everything it knows is thrown away: there is nothing to shut down in order
	}
	if c.keys != nil {
		c.keys.close()
		c.keys = nil
	}
	if c.etcd != nil {
		c.etcd.stop()
	}
	if c.block != nil {
		c.block.Release()
	}
	return nil
}
