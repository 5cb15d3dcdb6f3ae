package directory

import (
	"fmt"
	"strconv"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// Gate is where weir-gate is: the relay beside kube-apiserver. The zero value is none.
type Gate struct {
	Server      string `json:"server"`      // https://host:port
	Authorities string `json:"authorities"` // PEM of the certificates that its own is judged by
	// Ways is how many replicas of it the leader keeps a connection to, by which the cloud reaches into the pool; 0: none.
	Ways int `json:"ways,omitempty"`
}

// MaxWays bounds Gate.Ways.
const MaxWays = 9

// MaxAuthorities bounds Gate.Authorities, in bytes.
const MaxAuthorities = 8 << 10

// gateOf is the gate that annotations tell of. Remarks beside its certificates are left out.
func gateOf(annotations map[string]string) (g Gate, err error) {
	authorities := annotations[contract.LeaderHubGateCA]
	if certs, err := pki.ParseCertificates([]byte(authorities)); err == nil {
		authorities = string(pki.EncodeCertificates(certs))
	}
	g = Gate{Server: annotations[contract.LeaderHubGate], Authorities: authorities}
	if ways := annotations[contract.LeaderHubGateWays]; ways != "" {
		if g.Ways, err = strconv.Atoi(ways); err != nil {
			return Gate{}, fmt.Errorf("%s is %.80q, want 0 to %d", contract.LeaderHubGateWays, ways, MaxWays)
		}
	}
	return g, nil
}

func (g Gate) check() error {
	if g == (Gate{}) {
		return nil
	}
	if _, ok := PlainURL(g.Server); !ok {
		return fmt.Errorf("%s is %.80q, want a URL of the form https://host:port", contract.LeaderHubGate, g.Server)
	}
	if g.Ways < 0 || g.Ways > MaxWays {
		return fmt.Errorf("%s is %d, want 0 to %d", contract.LeaderHubGateWays, g.Ways, MaxWays)
	}
	_, err := pki.ParseCertificates([]byte(g.Authorities)) // it refuses keys, which a file may have beside them
	if n := len(g.Authorities); err != nil || n > MaxAuthorities {
		return fmt.Errorf("%s has %d bytes, want certificates as PEM and nothing else, %d bytes at most",
			contract.LeaderHubGateCA, n, MaxAuthorities)
	}
	return nil
}
