package cloud

import (
	"fmt"
	"path/filepath"

	"github.com/weir-edge/weir/sim/testca"
)

// EgressUser is who kube-apiserver is at the proxy of Egress, and at kubelets. It has no group.
const EgressUser = "kube-apiserver-egress"

const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: %s
        tlsConfig: {caBundle: %s, clientCert: %s, clientKey: %s}
`

// Egress has kube-apiserver reach kubelets, webhooks and aggregated APIs by CONNECT at a proxy, whose certificate an
// authority has signed, from when it is started next. Kubelets are asked for by the names of their nodes, where a
// Node has one.
func (c *Cloud) Egress(url string, authority []byte) error {
	dir := filepath.Dir(c.APIServerLog())
	pair, err := c.ca.Issue(testca.Request{CommonName: EgressUser, Client: true})
	if err != nil {
		return err
	}
	certFile, keyFile, err := pair.Write(dir, "egress")
	if err != nil {
		return err
	}
	caFile, err := testca.WriteFile(dir, "egress-ca.crt", authority)
	if err != nil {
		return err
	}
	file, err := testca.WriteFile(dir, "egress.yaml", fmt.Appendf(nil, egress, url, caFile, certFile, keyFile))
	if err != nil {
		return err
	}
	c.args = append(c.args, "--egress-selector-config-file="+file, "--kubelet-client-certificate="+certFile,
		"--kubelet-client-key="+keyFile, "--kubelet-preferred-address-types=Hostname,InternalIP")
	return nil
}
