package manager

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/process"
)

// gateLooks is how often --gate-ca-file is looked at.
const gateLooks = 10 * time.Second

// checkGate checks what is said of weir-gate. It looks at no file.
func (c Config) checkGate() error {
	_, plain := directory.PlainURL(c.Gate)
	switch {
	case c.Gate == "" && c.GateCAFile == "":
		return nil
	case c.Gate == "":
		return cli.Usage("--gate", "", "https://host:port; it is required with --gate-ca-file")
	case !plain:
		return cli.Usage("--gate", c.Gate, "https://host:port")
	case c.GateCAFile == "":
		return cli.Usage("--gate-ca-file", "", "a PEM file of certificates; it is required with --gate")
	}
	return nil
}

// beside is weir-gate, beside kube-apiserver, as pools are told of it. It is safe for concurrent use.
type beside struct {
	server, file string // "": there is no gate
	clock        clock.Clock
	log          *slog.Logger

	mu  sync.Mutex
	now directory.Gate
}

// newBeside reads the authorities of a gate.
func newBeside(s *settings) (*beside, error) {
	b := &beside{server: s.Gate, file: s.GateCAFile, clock: s.Clock, log: s.Logger}
	var err error
	if b.now, err = b.read(); err != nil {
		return nil, cli.Usage("--gate-ca-file", b.file, err.Error())
	}
	return b, nil
}

// read is the gate as the file says it now. Pools are told of certificates and of nothing else that the file may have.
func (b *beside) read() (directory.Gate, error) {
	if b.file == "" {
		return directory.Gate{}, nil
	}
	text, err := disk.ReadFile(b.file, pki.MaxPEM)
	if err != nil {
		return directory.Gate{}, err
	}
	all, err := pki.ParseCertificates(text)
	if err != nil {
		return directory.Gate{}, err
	}
	pem := pki.EncodeCertificates(all)
	if len(pem) > directory.MaxAuthorities {
		return directory.Gate{}, fmt.Errorf("%d bytes of certificates, want %d at most", len(pem), directory.MaxAuthorities)
	}
	return directory.Gate{Server: b.server, Authorities: string(pem)}, nil
}

// gate is what pools are told.
func (b *beside) gate() directory.Gate {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// follow looks at the file again and calls changed when it says something else, until ctx ends. A file that says
// nothing valid changes nothing.
func (b *beside) follow(ctx context.Context, changed func()) {
	if b.file == "" {
		return
	}
	said := ""
	for ; ctx.Err() == nil; process.Pause(ctx, b.clock, gateLooks) {
		next, err := b.read()
		if err != nil {
			if said != err.Error() {
				said = err.Error()
				b.log.Warn("the authorities of the gate cannot be read: pools are told those of before", "file", b.file, "err", err)
			}
			continue
		}
		said = ""
		if b.take(next) {
			b.log.Info("the gate has other authorities: pools are told", "gate", b.server)
			changed()
		}
	}
}

// take reports whether pools are told something else from now on.
func (b *beside) take(next directory.Gate) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == next {
		return false
	}
	b.now = next
	return true
}
