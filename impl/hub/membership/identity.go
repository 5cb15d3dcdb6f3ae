package membership

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/role"
)

// maxIdentity bounds a file, in bytes: a name of a node and a random part.
const maxIdentity = 300

// Named is the configuration of a process that takes part as "<node>_<random>", and knows the identity of the last one
// of its node that led by the file that it left.
func Named(c role.Config, node, file string, logger *slog.Logger) (role.Config, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return c, fmt.Errorf("make an identity: %w", err)
	}
	c.Identity, c.Seed = node+"_"+hex.EncodeToString(b[:8]), binary.LittleEndian.Uint64(b[8:])
	c.Former = former(file, node, logger)
	return c, nil
}

// former is the identity that the last process that led left in a file, "" if none did. It has ended: this one has its
// folder.
func former(path, node string, logger *slog.Logger) string {
	text, err := disk.ReadFile(path, maxIdentity)
	switch id := string(text); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		logger.Warn("cannot read the identity of the last process: a Lease that it held has to expire", "err", err)
	case contract.NodeOfIdentity(id) == node:
		return id
	default:
		logger.Warn("the last process was of another node: a Lease that it held is not this hub's", "file", path, "was", id,
			"node", node)
	}
	return ""
}

// leaveIdentity tells the next process who this one is.
func (p *Pool) leaveIdentity() {
	if err := disk.WriteFile(p.IdentityFile, []byte(p.identity)); err != nil {
		p.Logger.Warn("cannot keep the identity of this process: a Lease that it holds at its end has to expire", "err", err)
	}
}
