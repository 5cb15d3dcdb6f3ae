package bulletin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// Brief is the same for the same text, whatever blanks surround it: what Sum is made of.
func Brief(text []byte) string { return TagOf(bytes.TrimSpace(text)) }

// Sum is made of the Brief of each document of a pool, in the order of a Board. weir-manager signs it with each receipt
// of a roll call (package heartbeat), so a member knows whether it holds the newest without a watch of its own. Texts
// are signed: nobody can make one that fits a sum, so 48 bits are enough to tell the few that there are apart.
func Sum(briefs ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(briefs, " ")))
	return base64.RawURLEncoding.EncodeToString(sum[:contract.SumBytes])
}
