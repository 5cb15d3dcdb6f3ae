package hub

import (
	"net/http"
	"path/filepath"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	// of a certificate that a token brought: who takes the node's token from it wants it to be nobody soon.
	nodeLife = 24 * time.Hour
	patience = time.Hour // for a cloud that signs none
)

// buildKubeconfig reads the kubelet's kubeconfig, if the hub goes by that.
func (h *Hub) buildKubeconfig() (k *uplink.Kubeconfig, err error) {
	if h.CloudClientKubeconfig != "" {
		k, err = h.reload.Kubeconfig(h.CloudClientKubeconfig, filepath.Join(h.DataDir, "cloud"))
		h.kubeconfig = k
	}
	return k, err
}

// buildNode gets what the hub is its node by at the cloud: the kubelet's certificate, or what its kubeconfig has in the
// place of one. By that it asks for a certificate: while it has one that counts, no program is run and no token is
// shown.
func (h *Hub) buildNode() error {
	if h.kubeconfig == nil {
		p, err := h.reload.Pair("--cloud-client-cert-file", h.CloudClientCertFile)
		h.node = p
		return err
	}
	if !h.kubeconfig.Tokens() {
		p, err := h.reload.PairOf(h.CloudClientKubeconfig, h.CloudClientCertFile)
		if err == nil && p.Ours() {
			h.Logger.Warn("the kubelet's own certificate has expired, and it uses the one of weir node join: at the cloud "+
				"this node is nobody until the kubelet has another", "kubeconfig", h.CloudClientKubeconfig)
		}
		h.node = p
		return err
	}
	user, err := h.kubeconfig.User()
	if err != nil && h.reload.Worked { // it is followed
		user, err = &credential.User{}, nil
	}
	if err != nil {
		return cli.Usage(uplink.KubeconfigFlag, h.CloudClientKubeconfig, err.Error())
	}
	s := credential.New(credential.Config{User: user, Clock: provenClock{h.clock, h.time}, Logger: h.Logger})
	h.tokens = s
	name := contract.NodeUserPrefix + h.NodeName
	u := uplink.NewUser(uplink.UserConfig{
		Name: name, Node: name, OfNode: s, Shows: s, Now: h.time.Now, Changed: func() { h.cloud.RenewAs(uplink.AsNode) },
		Clock: h.clock, Logger: h.Logger,
	})
	kubelet := pki.Must(pki.Kubelet)
	kubelet.Signer = contract.KubeletSigner // the cluster's own, in which weir-manager has no say
	k, err := h.keeper(enrol.Config{
		Identity: kubelet, Subject: pki.Subject{Node: h.NodeName}, Life: nodeLife,
		Dir: filepath.Join(h.DataDir, "pki", "node"), Changed: u.Poke, Patience: patience,
	}, func(*enrol.Keeper) http.RoundTripper { return h.asks() })
	if err != nil {
		return err
	}
	u.Own = k
	h.node, h.shows = u, u
	return nil
}
