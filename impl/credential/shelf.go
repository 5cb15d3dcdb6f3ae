package credential

import (
	"crypto"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
)

// maxKept bounds a file: a key and a short chain.
const maxKept = 64 << 10

// shelf is where one certificate is kept.
type shelf struct {
	dir  string // "": nothing is kept
	kind pki.Kind
}

// KeptFile is where the key and the certificate of a kind are kept below a folder, for processes beside the one that
// asks.
func KeptFile(dir string, k pki.Kind) string { return filepath.Join(dir, string(k)+".pem") }

func (s shelf) path(suffix string) string { return filepath.Join(s.dir, string(s.kind)+suffix) }

func (s shelf) current() string { return KeptFile(s.dir, s.kind) }
func (s shelf) before() string  { return s.path(".before.pem") }
func (s shelf) asked() string   { return s.path(".asked.pem") }

// open makes the folder.
func (s shelf) open() error {
	if s.dir == "" {
		return nil
	}
	return os.MkdirAll(s.dir, 0o700)
}

// read reads one of the files. None is no error.
func (s shelf) read(path string) ([]byte, error) {
	if s.dir == "" {
		return nil, nil
	}
	text, err := disk.ReadFile(path, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// write replaces one of the files in one step.
func (s shelf) write(path string, text []byte) error {
	if s.dir == "" {
		return nil
	}
	return disk.WriteFile(path, text)
}

// load reads a pair. Without one both are nil.
func (s shelf) load(path string) (*pki.Pair, error) {
	text, err := s.read(path)
	if err != nil || text == nil {
		return nil, err
	}
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%d bytes that are no key and certificate in PEM", len(text))
	}
	return &pki.Pair{KeyPEM: pem.EncodeToMemory(block), CertPEM: rest}, nil
}

// save keeps a pair, and the one that it replaces.
func (s shelf) save(p, former *pki.Pair) error {
	if former != nil {
		if err := s.write(s.before(),
			append(former.KeyPEM[:len(former.KeyPEM):len(former.KeyPEM)], former.CertPEM...)); err != nil {
			return err
		}
	}
	return s.write(s.current(), append(p.KeyPEM[:len(p.KeyPEM):len(p.KeyPEM)], p.CertPEM...))
}

// pending is the key of a request that is under way; nil: there is none.
func (s shelf) pending() (crypto.Signer, error) {
	text, err := s.read(s.asked())
	if err != nil || text == nil {
		return nil, err
	}
	return pki.ParseKey(text)
}

// ask keeps the key of a request before it is sent.
func (s shelf) ask(key crypto.Signer) error {
	text, err := pki.EncodeKey(key)
	if err != nil {
		return err
	}
	return s.write(s.asked(), text)
}

// forget drops it.
func (s shelf) forget() error {
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(s.asked()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
