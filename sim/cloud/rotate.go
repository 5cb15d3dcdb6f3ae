package cloud

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/testca"
)

// stopPatience is for the end of an apiserver that is to move.
const stopPatience = time.Minute

// Trust lets the apiserver take client certificates of these authorities from now on. It follows its file.
func (c *Cloud) Trust(all ...*testca.Authority) error {
	var bundle bytes.Buffer
	for _, a := range all {
		bundle.Write(a.CertPEM())
	}
	_, err := testca.WriteFile(c.dir, "ca.crt", bundle.Bytes())
	return err
}

// Move restarts the apiserver at another port, with a certificate of another authority, which is the cluster's from
// then on. Client gives another client then.
func (c *Cloud) Move(ctx context.Context, to *testca.Authority) error {
	if err := c.APIServer().Stop(ctx, stopPatience); err != nil {
		return err
	}
	serving, err := to.Issue(testca.Request{CommonName: "kube-apiserver", Hosts: []string{c.config.Address, "localhost"}})
	if err != nil {
		return err
	}
	if _, _, err := serving.Write(c.dir, "apiserver"); err != nil {
		return err
	}
	admin, err := to.Issue(testca.Request{
		CommonName: "testbed-admin", Organizations: []string{"system:masters"}, Client: true,
	})
	if err != nil {
		return err
	}
	if c.port, err = freePort(ctx, c.config.Address, 0); err != nil {
		return err
	}
	for n, arg := range c.args {
		if strings.HasPrefix(arg, "--secure-port=") {
			c.args[n] = "--secure-port=" + strconv.Itoa(c.port)
		}
	}
	c.ca, c.admin.Host = to, c.URL()
	c.admin.CAData, c.admin.CertData, c.admin.KeyData = to.CertPEM(), admin.CertPEM, admin.KeyPEM
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return fmt.Errorf("create administrator's client: %w", err)
	}
	return c.StartAPIServer(ctx)
}
