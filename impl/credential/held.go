package credential

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/disk"
)

const maxToken = 64 << 10 // bytes

// held is a credential.
type held struct {
	token string    // "": there is none
	until time.Time // zero: until it is refused
	read  time.Time
}

// name is where it comes from, for people.
func (u *User) name() string {
	switch {
	case u.Exec != nil:
		return "exec " + u.Exec.Command
	case u.TokenFile != "":
		return "tokenFile " + u.TokenFile
	}
	return "token"
}

// readToken is the token of the file, or the one that stands in the kubeconfig.
func (u *User) readToken() (held, error) {
	token := u.Token
	if u.TokenFile != "" {
		text, err := disk.ReadFile(u.TokenFile, maxToken)
		if err != nil {
			return held{}, fmt.Errorf("%s: %w", u.name(), err)
		}
		token = string(bytes.TrimSpace(text))
	}
	if err := wellFormed(token); err != nil {
		return held{}, fmt.Errorf("%s: %w", u.name(), err)
	}
	return held{token: token}, nil
}

// wellFormed reports whether a token can be a header's. It is in no error.
func wellFormed(token string) error {
	if token == "" {
		return errors.New("it holds no token")
	}
	if len(token) > maxToken {
		return fmt.Errorf("its token has %d bytes: want %d at most", len(token), maxToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c >= 0x7f {
			return errors.New("its token has characters that no token has")
		}
	}
	return nil
}
