package store

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
)

// sealer encrypts objects at rest. nil seals nothing.
type sealer struct{ aead cipher.AEAD }

const keySize = 32

// newSealer reads a key: 32 bytes, or those in base64.
func newSealer(file string) (*sealer, error) {
	if file == "" {
		return nil, nil
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the key of the store: %w", err)
	}
	if len(key) != keySize {
		decoded, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(key)))
		if err != nil || len(decoded) != keySize {
			return nil, fmt.Errorf("the key of the store, %s: want %d random bytes, or these in base64; head -c %d /dev/urandom > %s makes one",
				file, keySize, keySize, file)
		}
		key = decoded
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead}, err
}

// seal encrypts raw and binds it to where it stands.
func (s *sealer) seal(raw, place []byte) []byte {
	b := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(raw)+s.aead.Overhead())
	_, _ = rand.Read(b) // never fails
	return s.aead.Seal(b, b, raw, place)
}

var errNoKey = errors.New("it is encrypted, and the store was opened without a key")

func (s *sealer) open(b, place []byte) ([]byte, error) {
	if s == nil {
		return nil, errNoKey
	}
	n := s.aead.NonceSize()
	if len(b) < n {
		return nil, errors.New("its seal is too short")
	}
	raw, err := s.aead.Open(nil, b[:n], b[n:], place)
	if err != nil {
		return nil, errors.New("its seal is broken, or the key is another one")
	}
	return raw, nil
}
