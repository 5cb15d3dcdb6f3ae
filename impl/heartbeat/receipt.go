package heartbeat

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// MaxReceipt is the longest text of a receipt: the signature may be one of RSA.
const MaxReceipt = 1 << 10

// receiptSubject is what an authority says that it signs.
const receiptSubject = "receipt"

// Receipt says which period is open, and which nodes of a report were renewed. It lasts until the next one.
type Receipt struct {
	Period uint64
	// Documents is a sum of all signed documents of the pool, as the cloud has them (package bulletin); "": nobody knows,
	// or the receipt is of a weir-manager of before.
	Documents string
	roster    Link // the roster of the report
	renewed   []byte
}

// newReceipt is that of a report; renewed are its entries in their order.
func newReceipt(period uint64, r Report, renewed []bool) Receipt {
	c := Receipt{Period: period, roster: sumOf(r.Roster()), renewed: make([]byte, (len(renewed)+7)/8)}
	for i, yes := range renewed {
		if yes {
			c.renewed[i/8] |= 1 << (i % 8)
		}
	}
	return c
}

// body is what is signed, but for the name of the pool.
func (c Receipt) body() string {
	text := strconv.FormatUint(c.Period, 36) + " " + base64.RawURLEncoding.EncodeToString(c.roster[:]) + " " +
		base64.RawURLEncoding.EncodeToString(c.renewed)
	if c.Documents != "" {
		text += " " + c.Documents
	}
	return text
}

// Signer signs a text that is about something: an authority of package pki.
type Signer interface {
	Vouch(what string, text []byte) ([]byte, error)
}

// Sign is the receipt as a Lease carries it.
func (c Receipt) Sign(a Signer, pool string) (string, error) {
	signature, err := a.Vouch(receiptSubject, signed(pool, c.body()))
	if err != nil {
		return "", err
	}
	return c.body() + " " + base64.RawURLEncoding.EncodeToString(signature), nil
}

func signed(pool, body string) []byte { return []byte(pool + "\n" + body) }

// ErrUnsigned is of a receipt that no authority has signed that may.
var ErrUnsigned = errors.New("no trusted authority has signed it")

// Vouches reports whether an authority has signed a text that is about something: see package pki.
type Vouches func(authority *x509.Certificate, what string, text, signature []byte) bool

// OpenReceipt reads a receipt that one of some authorities has signed for a pool.
func OpenReceipt(text, pool string, vouches Vouches, authorities []*x509.Certificate) (c Receipt, err error) {
	fail := func(field string, err error) (Receipt, error) {
		return Receipt{}, fmt.Errorf("receipt: %s: %w", field, err)
	}
	if len(text) > MaxReceipt {
		return fail("length", fmt.Errorf("%d bytes, want %d at most", len(text), MaxReceipt))
	}
	fields := strings.Split(text, " ")
	last := len(fields) - 1
	if last != 3 && last != 4 {
		return fail("fields", fmt.Errorf(
			"%d, want period, roster, renewed, documents if they are known, and signature, with blanks between", len(fields)))
	}
	if c.Period, err = parsePeriod(fields[0]); err != nil {
		return fail("period", err)
	}
	if c.roster, err = parseSum(fields[1]); err != nil {
		return fail("roster", err)
	}
	if c.renewed, err = base64.RawURLEncoding.Strict().DecodeString(fields[2]); err != nil {
		return fail("renewed", err)
	}
	if len(c.renewed) > (MaxRoll+7)/8 {
		return fail("renewed", fmt.Errorf("%d bytes, want one bit for each of %d nodes at most", len(c.renewed), MaxRoll))
	}
	if last == 4 {
		c.Documents = fields[3]
		if sum, err := base64.RawURLEncoding.Strict().DecodeString(c.Documents); err != nil || len(sum) != contract.SumBytes {
			return fail("documents", fmt.Errorf("%.20q, want %d bytes in base64url", c.Documents, contract.SumBytes))
		}
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(fields[last])
	if err != nil {
		return fail("signature", err)
	}
	if !slices.ContainsFunc(authorities, func(a *x509.Certificate) bool {
		return vouches(a, receiptSubject, signed(pool, c.body()), signature)
	}) {
		return fail("signature", ErrUnsigned)
	}
	return c, nil
}

// Notice is a receipt with the roster that it is about; "": nobody knows it, and the receipt only opens a period.
type Notice struct {
	Receipt string `json:"receipt,omitempty"`
	Roster  string `json:"roster,omitempty"`
}

// Check refuses a notice that is too long.
func (n Notice) Check() error {
	if len(n.Receipt) > MaxReceipt || len(n.Roster) > MaxRollText {
		return fmt.Errorf("notice: receipt of %d bytes and roster of %d, want %d and %d at most", len(n.Receipt),
			len(n.Roster), MaxReceipt, MaxRollText)
	}
	return nil
}

// Renewed is the period of a node's entry, if a receipt says of the roster that the node was renewed.
func (c Receipt) Renewed(roster, node string) (period uint64, yes bool) {
	if sumOf(roster) != c.roster {
		return 0, false
	}
	r, err := ParseRoster(roster)
	if err != nil {
		return 0, false
	}
	i, ok := slices.BinarySearchFunc(r.Entries, node, func(e Entry, name string) int {
		return strings.Compare(e.Node, name)
	})
	if !ok || i/8 >= len(c.renewed) || c.renewed[i/8]&(1<<(i%8)) == 0 {
		return 0, false
	}
	return r.Entries[i].Period, true
}
