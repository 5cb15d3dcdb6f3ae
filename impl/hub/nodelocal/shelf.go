package nodelocal

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	keysFile    = "node-authority.pem"
	copySuffix  = ".key.pem" // in the place of that of Config.File
	kubeletFile = "kubelet.pem"
	// maxKept bounds a file: some keys and certificates.
	maxKept = 64 << 10
	// most is how many authorities of a node may count at a time.
	most = 4
)

// held is one authority of the node.
type held struct {
	cert   *x509.Certificate
	signer *pki.Authority // nil: its key was dropped
}

// read reads a file. None is no error.
func read(path string) ([]byte, error) {
	text, err := disk.ReadFile(path, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// parse reads what encode wrote: certificates, the oldest first, behind the key of each that may sign.
func parse(text []byte, node string) (all []held, err error) {
	var key []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		one := pem.EncodeToMemory(block)
		if block.Type != "CERTIFICATE" {
			if key != nil {
				return nil, errors.New("two keys without a certificate between them")
			}
			key = one
			continue
		}
		h := held{}
		if key != nil {
			if h.signer, err = pki.LoadAuthority(one, key); err != nil {
				return nil, err
			}
			h.cert, key = h.signer.Cert(), nil
		} else {
			certs, err := pki.ParseCertificates(one)
			if err != nil {
				return nil, err
			}
			h.cert = certs[0]
		}
		if name := pki.NodeAuthorityName(node); h.cert.Subject.CommonName != name || !h.cert.IsCA {
			return nil, fmt.Errorf("it has the authority %.300q, want %q: it is of another node", h.cert.Subject.CommonName,
				name)
		}
		all = append(all, h)
	}
	if key != nil || len(all) == 0 || len(all) > most {
		return nil, fmt.Errorf("%d authorities in %d bytes, want 1 to %d, each behind its key", len(all), len(text), most)
	}
	return all, nil
}

func encode(all []held) (text []byte, err error) {
	for _, h := range all {
		if h.signer != nil {
			key, err := h.signer.KeyPEM()
			if err != nil {
				return nil, err
			}
			text = append(text, key...)
		}
		text = append(text, pki.EncodeCertificates([]*x509.Certificate{h.cert})...)
	}
	return text, nil
}

// show writes the certificates for everyone on the node, if the file has others.
func show(path string, text []byte) error {
	if old, err := read(path); path == "" || err == nil && string(old) == string(text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// split takes a file of a key and a certificate apart.
func split(text []byte) *pki.Pair {
	block, rest := pem.Decode(text)
	if block == nil {
		return &pki.Pair{}
	}
	return &pki.Pair{KeyPEM: pem.EncodeToMemory(block), CertPEM: rest}
}
