package membership

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
)

// maxIdentity bounds a file, in bytes: a name of a node and a random part.
const maxIdentity = 300

// NewIdentity returns "<node>_<random>".
func NewIdentity(node string) (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make an identity: %w", err)
	}
	return node + "_" + hex.EncodeToString(b[:]), nil
}

// Former is the identity that the last process that led left in a file, "" if none did. It has ended: this one has its
// folder.
func Former(path, node string, logger *slog.Logger) string {
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
func (c *Config) leaveIdentity() {
	if err := disk.WriteFile(c.IdentityFile, []byte(c.Role.Identity)); err != nil {
		c.Logger.Warn("cannot keep the identity of this process: a Lease that it holds at its end has to expire", "err", err)
	}
}
