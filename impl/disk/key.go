package disk

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Size is how many bytes a key has.
const Size = 32

// Reasons why something cannot be opened, for errors.Is.
var (
	// ErrNoKey says that the key is not here, or another one is: what is sealed should stay, since its key may come back.
	ErrNoKey = errors.New("it is encrypted, and its key is not here")
	// ErrBroken says that it is not what was sealed with this key at this place.
	ErrBroken = errors.New("its seal is broken")
	// ErrDamaged says that a file does not hold a key: a power cut may have emptied it.
	ErrDamaged = errors.New("it is no key")
)

// wrongSizeError is the number of bytes of what is no key.
type wrongSizeError int

func (n wrongSizeError) Error() string {
	return fmt.Sprintf("a key of %d bytes: want %d random bytes, or these in base64", int(n), Size)
}

func (wrongSizeError) Unwrap() error { return ErrDamaged }

// Key seals and opens. A nil one opens nothing.
type Key struct {
	aead cipher.AEAD
	name [nameSize]byte
}

const nameSize = 4

// NewKey makes a key of 32 random bytes, or of these in base64.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) != Size {
		decoded, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(secret)))
		if err != nil || len(decoded) != Size {
			return nil, wrongSizeError(len(secret))
		}
		secret = decoded
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	k := &Key{}
	name := sha256.Sum256(append([]byte("weir seal, the name of a key\n"), secret...))
	copy(k.name[:], name[:])
	k.aead, err = cipher.NewGCM(block)
	return k, err
}

// Seal encrypts raw and binds it to a place, for which it can be opened only.
func (k *Key) Seal(raw, place []byte) []byte {
	n := nameSize + k.aead.NonceSize()
	b := make([]byte, n, n+len(raw)+k.aead.Overhead())
	copy(b, k.name[:])
	_, _ = rand.Read(b[nameSize:]) // never fails
	return k.aead.Seal(b, b[nameSize:], raw, place)
}

// Fits reports whether something was sealed with this key.
func (k *Key) Fits(b []byte) bool { return k != nil && bytes.HasPrefix(b, k.name[:]) }

// Open gives what was sealed at a place.
func (k *Key) Open(b, place []byte) ([]byte, error) {
	if !k.Fits(b) {
		return nil, ErrNoKey
	}
	n := nameSize + k.aead.NonceSize()
	if len(b) < n {
		return nil, ErrBroken
	}
	raw, err := k.aead.Open(nil, b[nameSize:n], b[n:], place)
	if err != nil {
		return nil, ErrBroken
	}
	return raw, nil
}
