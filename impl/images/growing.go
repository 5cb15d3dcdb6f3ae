package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/exchange"
)

// looks is how often a file that grows is looked at.
const looks = 100 * time.Millisecond

// Why a file that grows is not read on.
var (
	errStalled = errors.New("no byte came for too long")
	errShrunk  = errors.New("containerd begins the pull again")
	errGone    = errors.New("containerd has given up the pull")
)

// growing reads a file that another process writes, as if it were complete: a read waits for bytes that are to come.
type growing struct {
	ctx   context.Context
	clock clock.WithTicker
	file  *os.File
	total int64
	at    int64
	err   error // why it ended early
}

// Seek implements io.Seeker.
func (g *growing) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += g.at
	case io.SeekEnd:
		offset += g.total
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d of %d bytes", offset, g.total)
	}
	g.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (g *growing) Read(p []byte) (int, error) {
	if g.at >= g.total {
		return 0, io.EOF
	}
	if left := g.total - g.at; int64(len(p)) > left {
		p = p[:left]
	}
	if g.err != nil || len(p) == 0 {
		return 0, g.err
	}
	n, err := g.read(p)
	g.at += int64(n)
	g.err = err
	return n, err
}

// read waits until there is a byte, or none has come for too long, wherever in the file.
func (g *growing) read(p []byte) (int, error) {
	size, since := int64(-1), g.clock.Now()
	var tick clock.Ticker
	for {
		n, err := g.file.ReadAt(p, g.at)
		if n > 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		info, err := g.file.Stat()
		if err != nil {
			return 0, err
		}
		switch now := g.clock.Now(); {
		case info.Size() < size:
			return 0, errShrunk
		case info.Size() > size:
			size, since = info.Size(), now
		case now.Sub(since) >= exchange.PullSlow, now.Sub(since) >= exchange.PullStall && !isWritten(g.file):
			return 0, errStalled
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 0 {
			return 0, errGone
		}
		if tick == nil {
			tick = g.clock.NewTicker(looks)
			defer tick.Stop()
		}
		select {
		case <-tick.C():
		case <-g.ctx.Done():
			return 0, g.ctx.Err()
		}
	}
}
