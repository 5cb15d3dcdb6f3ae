package coordinator

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/pause"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

const (
	awaitEvery = time.Second // how often it is looked whether a certificate is there
	awaitTold  = time.Minute // how often it is told that none is
)

// fromDir names the files that the hub of this node keeps.
func (s *settings) fromDir() error {
	if s.CertificatesDir == "" {
		return nil
	}
	if s.ClientCAFile == "" {
		s.ClientCAFile = filepath.Join(s.CertificatesDir, trust.CAFile)
	}
	for _, f := range []struct {
		flag string
		path *string
		kind pki.Kind
	}{
		{"--tls-cert-file", &s.TLSCertFile, pki.Coordinator}, {"--tls-private-key-file", &s.TLSPrivateKeyFile, pki.Coordinator},
		{"--peer-cert-file", &s.PeerCertFile, pki.Replica}, {"--peer-key-file", &s.PeerKeyFile, pki.Replica},
	} {
		switch {
		case *f.path != "":
			return cli.Usage(f.flag, *f.path, "none with --certificates-dir, which has it")
		case f.kind == pki.Coordinator || len(s.InitialCluster) > 0:
			*f.path = enrol.File(s.CertificatesDir, f.kind)
		}
	}
	return nil
}

// awaitCertificates waits until the hub of this node has got what --certificates-dir is to hold, or until ctx ends. At the first start of a node that takes
// until weir-manager has answered. Nothing can be served meanwhile, health neither: there is no certificate to show.
func (c Config) awaitCertificates(ctx context.Context) error {
	s, err := c.check()
	if err != nil || s.CertificatesDir == "" {
		return err
	}
	files := []string{s.TLSCertFile}
	if c.ClientCAFile == "" {
		files = append(files, s.ClientCAFile)
	}
	if s.PeerCertFile != "" {
		files = append(files, s.PeerCertFile)
	}
	for _, file := range files {
		waited := time.Duration(0)
		for ; missing(file) && ctx.Err() == nil; waited += awaitEvery {
			if waited%awaitTold == 0 {
				s.Logger.Warn("waiting for a certificate: the hub of this node asks weir-manager for it, see its --enrol-coordinator-dir and weir_certificate_failures_total",
					"file", file, "waited", waited)
			}
			pause.For(ctx, clock.RealClock{}, awaitEvery)
		}
		if waited > 0 && ctx.Err() == nil {
			s.Logger.Info("the certificate is there", "file", file, "waited", waited)
		}
	}
	return nil
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}
