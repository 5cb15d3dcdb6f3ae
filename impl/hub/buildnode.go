package hub

import (
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/credential"
)

// buildNode gets what the hub is its node by at the cloud: the kubelet's certificate, or what its kubeconfig has in the place of one.
func (h *Hub) buildNode() error {
	if h.CloudClientKubeconfig == "" {
		p, err := h.reload.Pair("--cloud-client-cert-file", h.CloudClientCertFile, "--cloud-client-key-file", h.CloudClientKeyFile)
		h.node = p
		return err
	}
	user, err := credential.Load(h.CloudClientKubeconfig)
	if err != nil {
		return cli.Usage("--cloud-client-kubeconfig", h.CloudClientKubeconfig, "a kubeconfig whose user has a token, a tokenFile or an exec plugin: "+err.Error())
	}
	s := credential.New(credential.Config{User: user, Clock: provenClock{h.clock, h.time}, Logger: h.Logger})
	h.node, h.shows = s, s
	return nil
}
