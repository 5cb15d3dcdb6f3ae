package operator

import (
	"os"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/weir-edge/weir/impl/cli"
)

// looks is how often it is looked whether the terminal has another size. Not every system tells.
const looks = 250 * time.Millisecond

// terminal is one in raw mode. It implements remotecommand.TerminalSizeQueue.
type terminal struct {
	fd    int
	was   *term.State
	last  remotecommand.TerminalSize
	ended chan struct{}
	close func()
}

func openTerminal(in *os.File) (*terminal, error) {
	t := &terminal{fd: int(in.Fd()), ended: make(chan struct{})}
	if !term.IsTerminal(t.fd) {
		return nil, cli.Usage("--tty", true, "where standard input is a terminal; leave it out")
	}
	var err error
	if t.was, err = term.MakeRaw(t.fd); err != nil {
		return nil, err
	}
	t.close = sync.OnceFunc(func() {
		close(t.ended)
		_ = term.Restore(t.fd, t.was)
	})
	return t, nil
}

// Next returns a size that is another one. It blocks until there is one; nil: the terminal was closed.
func (t *terminal) Next() *remotecommand.TerminalSize {
	for {
		width, height, err := term.GetSize(t.fd)
		if err == nil && width > 0 && height > 0 {
			size := remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)} //nolint:gosec // columns
			if size != t.last {
				t.last = size
				return &size
			}
		}
		select {
		case <-t.ended:
			return nil
		case <-time.After(looks):
		}
	}
}
