package hub

import (
	"net/http"
	"path/filepath"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/hub/ownuser"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
)

// buildAtCloud gets the certificate of the hub's own user: from files, or one that the hub asks for itself. Where
// certificates in the pool come from files and this one does not, the hub is its node.
func (h *Hub) buildAtCloud() (*ownuser.User, error) {
	a := ownuser.New(ownuser.Config{
		Name: contract.HubUserPrefix + h.NodePoolName + ":" + h.NodeName, Node: contract.NodeUserPrefix + h.NodeName,
		OfNode: h.node, Shows: h.shows, Now: h.time.Now,
		Clock: h.clock, Logger: h.Logger, Changed: func() {
			h.cloud.RenewAs(uplink.AsHub)
		}, Swept: func() { h.cloud.Sweep() },
	})
	switch {
	case h.CloudHubCertFile != "":
		p, err := h.reload.Pair("--cloud-hub-cert-file", h.CloudHubCertFile, "--cloud-hub-key-file", h.CloudHubKeyFile)
		if err != nil {
			return nil, err
		}
		if c := p.Get(); c != nil && c.Leaf.Subject.CommonName != a.Name {
			return nil, cli.Usage("--cloud-hub-cert-file", h.CloudHubCertFile,
				"a certificate of the user "+a.Name+", and not of "+c.Leaf.Subject.CommonName)
		}
		a.Own = p
	case h.asksAtCloud():
		token := ""
		k, err := h.keeper(enrol.Config{
			Identity: pki.Must(pki.HubAtCloud), Dir: filepath.Join(h.DataDir, "pki"), Changed: a.Poke,
		}, func(k *enrol.Keeper) http.RoundTripper {
			if token != "" && k.Get() == nil {
				return credential.Bearer{With: token, RoundTripper: h.cloud.Way(uplink.ClassControl, uplink.AsCaller)}
			}
			return h.asks()
		})
		if err != nil {
			return nil, err
		}
		if a.Own = k; k.Get() == nil {
			if token, err = credential.BootstrapToken(h.BootstrapTokenFile); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

// asksAtCloud reports whether the hub asks for the certificate of its own user.
func (s *settings) asksAtCloud() bool {
	return s.CloudHubCertFile == "" && s.CoordinatorClientCertFile == "" && s.CoordinatorClientKeyFile == ""
}

// retry asks again for what failed because the cloud was away.
func (h *Hub) retry() {
	if h.cloud.Healthy() {
		for _, k := range h.keepers {
			k.Retry()
		}
	}
}
