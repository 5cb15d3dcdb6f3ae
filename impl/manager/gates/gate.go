package gates

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

// looks is how often the file is looked at.
const looks = 10 * time.Second

// Config is what a Gate is made of. Without a server there is no gate.
type Config struct {
	Server string // --gate: https://host:port
	CAFile string // --gate-ca-file: PEM of the authorities of its certificate
	Ways   int    // --gate-ways
	Clock  clock.Clock
	Logger *slog.Logger
}

// Validate reports an invalid value, as a *cli.UsageError. It looks at no file.
func (c Config) Validate() error {
	_, plain := directory.PlainURL(c.Server)
	switch {
	case c.Ways < 0 || c.Ways > directory.MaxWays:
		return cli.Usage("--gate-ways", c.Ways, fmt.Sprintf("0 to %d, the replicas of weir-gate", directory.MaxWays))
	case c.Ways > 0 && c.Server == "":
		return cli.Usage("--gate", "", "https://host:port; it is required with --gate-ways")
	case c.Server == "" && c.CAFile == "":
		return nil
	case c.Server == "":
		return cli.Usage("--gate", "", "https://host:port; it is required with --gate-ca-file")
	case !plain:
		return cli.Usage("--gate", c.Server, "https://host:port")
	case c.CAFile == "":
		return cli.Usage("--gate-ca-file", "", "a PEM file of certificates; it is required with --gate")
	}
	return nil
}

// Gate is weir-gate as pools are told of it. It is safe for concurrent use.
type Gate struct {
	Config

	mu  sync.Mutex
	now directory.Gate
}

// New reads the authorities of a gate, of a Config that is valid.
func New(c Config) (*Gate, error) {
	g := &Gate{Config: c}
	var err error
	if g.now, err = c.read(); err != nil {
		return nil, cli.Usage("--gate-ca-file", c.CAFile, err.Error())
	}
	return g, nil
}

// read is the gate as the file says it now. Pools are told certificates. A file that has anything else is refused: it
// may be a key.
func (c Config) read() (directory.Gate, error) {
	if c.CAFile == "" {
		return directory.Gate{}, nil
	}
	text, err := disk.ReadFile(c.CAFile, pki.MaxPEM)
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
	return directory.Gate{Server: c.Server, Authorities: string(pem), Ways: c.Ways}, nil
}

// Now is what pools are told. Its zero value: there is no gate.
func (g *Gate) Now() directory.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}

// Follow looks at the file again and again, and calls changed when Now returns something else, until ctx ends. A file
// that is invalid changes nothing.
func (g *Gate) Follow(ctx context.Context, changed func()) {
	if g.CAFile == "" {
		return
	}
	said := ""
	for ; ctx.Err() == nil; process.Pause(ctx, g.Clock, looks) {
		next, err := g.read()
		if err != nil {
			if said != err.Error() {
				said = err.Error()
				g.Logger.Warn("the authorities of the gate cannot be read: pools are told those of before", "file", g.CAFile,
					"err", err)
			}
			continue
		}
		said = ""
		if g.take(next) {
			g.Logger.Info("the gate has other authorities: pools are told", "gate", g.Server)
			changed()
		}
	}
}

// take reports whether pools are told something else from now on.
func (g *Gate) take(next directory.Gate) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now == next {
		return false
	}
	g.now = next
	return true
}
