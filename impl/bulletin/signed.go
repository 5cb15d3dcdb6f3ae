package bulletin

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

// Ahead is how far the number of a document, and the times in it, may be ahead of the time of the one that judges it.
const Ahead = time.Hour

const signatureField = "signature"

// Form is how documents of one kind are signed.
type Form struct {
	Subject string // what an authority says that it signs: "denylist"
	Field   string // of the document in its line
	Max     int    // bytes of a line
}

// Signed is a line that was taken apart. Nobody has looked at its signature yet, see By.
type Signed struct {
	Doc  json.RawMessage
	Line []byte // with its end

	subject   string
	signature []byte
}

// ErrUnsigned is of a document that none of the authorities has signed that may.
var ErrUnsigned = errors.New("no trusted authority has signed it")

// Sign is a document as one line of text.
func (f Form) Sign(a *pki.Authority, doc any) (line []byte, err error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("sign a %s: %w", f.Subject, err) }
	text, err := json.Marshal(doc)
	if err != nil {
		return fail(err)
	}
	signature, err := a.Vouch(f.Subject, text)
	if err != nil {
		return fail(err)
	}
	if line, err = json.Marshal(map[string]any{f.Field: json.RawMessage(text), signatureField: signature}); err != nil {
		return fail(err)
	}
	if line = append(line, '\n'); len(line) > f.Max {
		return fail(fmt.Errorf("%d bytes, want %d at most", len(line), f.Max))
	}
	return line, nil
}

// Read takes a line apart.
func (f Form) Read(line []byte) (s Signed, err error) {
	if len(line) > f.Max {
		return s, fmt.Errorf("%d bytes, want %d at most", len(line), f.Max)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return s, err
	}
	s = Signed{Doc: fields[f.Field], Line: append(bytes.TrimSpace(line), '\n'), subject: f.Subject}
	if text := fields[signatureField]; s.Doc == nil || text == nil {
		return s, fmt.Errorf("it has no %s with a %s: %w", f.Field, signatureField, ErrUnsigned)
	} else if err := json.Unmarshal(text, &s.signature); err != nil {
		return s, fmt.Errorf("%s: %w", signatureField, err)
	}
	return s, nil
}

// By is the first of some authorities that has signed it; nil: none of them has.
func (s Signed) By(authorities ...*x509.Certificate) *x509.Certificate {
	for _, a := range authorities {
		if pki.Vouches(a, s.subject, s.Doc, s.signature) {
			return a
		}
	}
	return nil
}

// Next is the number of a document that is written now, after one with a number.
func Next(before uint64, now time.Time) uint64 {
	return max(before+1, uint64(max(now.UnixMilli(), 1)))
}

// Bound refuses numbers and times that are too far ahead. The zero Bound refuses none.
type Bound struct{ latest time.Time }

// By is the Bound of who knows the time so.
func By(t *pki.Proven) Bound {
	now, known := t.Known()
	if !known {
		return Bound{}
	}
	return At(now)
}

// At is the Bound at a time.
func At(now time.Time) Bound { return Bound{now.Add(Ahead)} }

// Later is a Bound that allows as much again: so the cloud can be above whatever a member of a pool has made others
// believe.
func (b Bound) Later() Bound {
	if b.latest.IsZero() {
		return b
	}
	return Bound{b.latest.Add(Ahead)}
}

// Number refuses a number, which is a time in milliseconds.
func (b Bound) Number(n uint64) error {
	if limit := b.latest.UnixMilli(); !b.latest.IsZero() && (limit < 0 || n > uint64(limit)) {
		return fmt.Errorf("its number is %d, want %d at most: no document is of a time more than %s ahead", n, max(limit, 0),
			Ahead)
	}
	return nil
}

// Time refuses a time, which is of a field.
func (b Bound) Time(field string, t time.Time) error {
	if !b.latest.IsZero() && t.After(b.latest) {
		return fmt.Errorf("%s is %s, want %s at the latest: no document names a time more than %s ahead", field,
			t.UTC().Format(time.RFC3339), b.latest.UTC().Format(time.RFC3339), Ahead)
	}
	return nil
}
