package coordinator

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/process"
)

const (
	awaitEvery = time.Second // how often it is looked whether a certificate is there
	awaitTold  = time.Minute // how often it is told that none is
)

// awaitCertificates waits until the hub of this node has got what --certificates-dir is to hold, or until ctx ends. At
// the first start of a node that takes until weir-manager has answered. Nothing can be served meanwhile, health
// neither: there is no certificate to show.
func (c Config) awaitCertificates(ctx context.Context) error {
	s, err := c.check()
	if err != nil {
		return err
	}
	files := []string{s.servingFile, s.caFile}
	if s.peerFile != "" {
		files = append(files, s.peerFile)
	}
	for _, file := range files {
		waited := time.Duration(0)
		for ; missing(file) && ctx.Err() == nil; waited += awaitEvery {
			if waited%awaitTold == 0 {
				s.Logger.Warn("waiting for a certificate: the hub of this node asks weir-manager for it, see its "+
					"--enrol-coordinator-dir and weir_certificate_failures_total",
					"file", file, "waited", waited)
			}
			process.Pause(ctx, clock.RealClock{}, awaitEvery)
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
