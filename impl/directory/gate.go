package directory

import (
	"crypto/x509"
	"fmt"

	"github.com/weir-edge/weir/impl/contract"
)

// Gate is where weir-gate is: the relay beside kube-apiserver. The zero value is none.
type Gate struct {
	Server      string `json:"server"`      // https://host:port
	Authorities string `json:"authorities"` // PEM of the certificates that its own is judged by
}

// maxAuthorities bounds Gate.Authorities, in bytes.
const maxAuthorities = 8 << 10

func (g Gate) check() error {
	if g == (Gate{}) {
		return nil
	}
	if _, ok := plainURL(g.Server); !ok {
		return fmt.Errorf("%s is %.80q, want a URL of the form https://host:port", contract.LeaderHubGate, g.Server)
	}
	if n := len(g.Authorities); n > maxAuthorities ||
		!x509.NewCertPool().AppendCertsFromPEM([]byte(g.Authorities)) {
		return fmt.Errorf("%s has %d bytes, want certificates as PEM, %d bytes at most", contract.LeaderHubGateCA, n,
			maxAuthorities)
	}
	return nil
}
