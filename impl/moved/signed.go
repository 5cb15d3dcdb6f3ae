package moved

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

// subject is what a hub says that it signs.
const subject = "statement of moved pods"

// Bounds of what is passed on with a statement.
const (
	maxSignature   = 512
	maxCertificate = 4 << 10
	maxChain       = 4 // certificates, leaf first
)

// Signed is a statement as it is passed on. A node on its way can change nothing of it.
type Signed struct {
	Text      string   `json:"text"`
	Signature []byte   `json:"signature"`
	Chain     [][]byte `json:"chain"` // of the hub's certificate for its pool, leaf first, in DER
	// Age is for how many seconds the desk has had it. It is not signed: who can hold a statement back has no more of it.
	Age int64 `json:"age,omitempty"`
}

// Sign signs a statement with the key that the hub has for its pool; vouch is pki.VouchAs with that key.
func (s Statement) Sign(pool string, chain [][]byte, vouch func(what string, text []byte) ([]byte, error)) (Signed,
	error) {
	text := s.String()
	signature, err := vouch(subject, about(pool, text))
	return Signed{Text: text, Signature: signature, Chain: chain}, err
}

// about ties a statement to its pool.
func about(pool, text string) []byte { return []byte(pool + "\n" + text) }

// ErrUnsigned is of a statement that the hub of its node has not signed.
var ErrUnsigned = errors.New("the hub of the node has not signed it")

// Read reads a statement within its bounds. It proves nothing of it.
func (s Signed) Read() (Statement, error) {
	if len(s.Signature) > maxSignature {
		return unsigned("signature", fmt.Errorf("%d bytes, want %d at most", len(s.Signature), maxSignature))
	}
	if len(s.Chain) == 0 || len(s.Chain) > maxChain {
		return unsigned("chain", fmt.Errorf("%d certificates, want 1 to %d", len(s.Chain), maxChain))
	}
	for _, der := range s.Chain {
		if len(der) > maxCertificate {
			return unsigned("chain", fmt.Errorf("a certificate of %d bytes, want %d at most", len(der), maxCertificate))
		}
	}
	st, err := ParseStatement(s.Text)
	if err != nil {
		return Statement{}, fmt.Errorf("signed %w", err)
	}
	return st, nil
}

// Open is Read of a statement that counts. It does if the certificate is that of the hub of the statement's node in the
// pool, and verify accepts the chain: a trusted authority has signed it, and it is neither revoked nor expired.
func (s Signed) Open(pool string, verify func(chain []*x509.Certificate) error) (Statement, error) {
	st, err := s.Read()
	if err != nil {
		return Statement{}, err
	}
	var chain []*x509.Certificate
	for _, der := range s.Chain {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return unsigned("chain", err)
		}
		chain = append(chain, c)
	}
	if err := pki.Must(pki.Hub).CheckCertificate(chain[0], pki.Subject{Pool: pool, Node: st.Node}); err != nil {
		return unsigned("chain", err)
	}
	if err := verify(chain); err != nil {
		return unsigned("chain", err)
	}
	if !pki.VouchedBy(chain[0], subject, about(pool, s.Text), s.Signature) {
		return unsigned("signature", ErrUnsigned)
	}
	st.Age = time.Duration(min(max(s.Age, 0), int64(Silence/time.Second))) * time.Second
	return st, nil
}

// unsigned is why a statement does not count.
func unsigned(field string, err error) (Statement, error) {
	return Statement{}, fmt.Errorf("signed statement: %s: %w", field, err)
}
