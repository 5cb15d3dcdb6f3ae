package install

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

// mostCertificates bounds what is told of one machine.
const mostCertificates = 200

// Certificate is one of this node's, as its file has it.
type Certificate struct {
	// What is the kind by weir pki table, "authority" of one that signs others, or "" for what is none of Weir's.
	What    string    `json:"what"`
	Subject string    `json:"subject"`
	Signer  string    `json:"signer"`
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
	File    string    `json:"file"`
}

// Certificates are those of the kubelet, of the hub, and of a coordinator that weir-manager may run here; the first to
// end comes first. Of a node that has not joined it is the kubelet's alone. After an error there are those that could
// be read.
func (i *Installer) Certificates(ctx context.Context) (all []Certificate, err error) {
	j, err := i.Host.load()
	if err != nil {
		return nil, err
	}
	if j != nil && i.Kubeconfig == "" {
		i.Kubeconfig = j.Kubeconfig
	}
	k, ofKubelet := i.findKubelet(ctx)
	if ofKubelet == nil && k.leaf != nil {
		own := certificate(k.leaf, cmp.Or(k.certFile, k.path))
		own.What = string(pki.Kubelet) // whatever its cluster puts into it
		all = append(all, own)
	}
	if j == nil {
		return all, ofKubelet
	}
	files := []string{cloudCA, clientCA, authority, localCA, localPair}
	for _, dir := range []string{hubData + "/pki", forPod} {
		entries, err := os.ReadDir(i.Host.at(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if name := e.Name(); e.Type().IsRegular() && filepath.Ext(name) == ".pem" &&
				!strings.HasSuffix(name, ".asked.pem") && !strings.HasSuffix(name, ".before.pem") {
				files = append(files, filepath.Join(dir, name))
			}
		}
	}
	for _, f := range files {
		text, err := i.Host.read(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, c := range certificatesIn(text) {
			all = append(all, certificate(c, f))
		}
	}
	slices.SortStableFunc(all, func(a, b Certificate) int { return a.End.Compare(b.End) })
	return all[:min(len(all), mostCertificates)], ofKubelet
}

// certificatesIn are those of a file that may hold keys, too. What is none is left out.
func certificatesIn(text []byte) (all []*x509.Certificate) {
	for len(all) < mostCertificates {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
	return all
}

func certificate(c *x509.Certificate, file string) Certificate {
	out := Certificate{
		Subject: c.Subject.String(), Signer: c.Issuer.String(), Begin: c.NotBefore.UTC(), End: c.NotAfter.UTC(), File: file,
	}
	if c.IsCA {
		out.What = "authority"
	} else if known, _, err := pki.Recognize(c); err == nil {
		out.What = string(known.Kind)
	}
	return out
}
