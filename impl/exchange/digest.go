package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// algorithm is the only one of digests that a pool shares. Registries serve hardly any other.
const algorithm = "sha256:"

// Digest is the sha256 of a blob.
type Digest [sha256.Size]byte

// ParseDigest reads one as image references have it: sha256: and 64 small hexadecimal digits.
func ParseDigest(s string) (d Digest, err error) {
	text, ok := strings.CutPrefix(s, algorithm)
	if ok {
		err = d.UnmarshalText([]byte(text))
	}
	if !ok || err != nil {
		return Digest{}, fmt.Errorf("digest %.80q: want sha256: and 64 digits of 0-9 and a-f", s)
	}
	return d, nil
}

// Hex is its 64 digits.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// String is the digest as image references have it.
func (d Digest) String() string { return algorithm + d.Hex() }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Capitals are refused: a file of a store has small letters.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) || strings.ToLower(string(text)) != string(text) {
		return fmt.Errorf("digest %.80q: want 64 digits of 0-9 and a-f", text)
	}
	_, err := hex.Decode(d[:], text)
	return err
}
