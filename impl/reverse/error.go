package reverse

import (
	"net/http"
	"strings"
)

// Kind is why a connection into a pool does not come about, or ends early.
type Kind string

// The kinds.
const (
	Refused     Kind = "refused"     // the rules do not allow the address
	NoWay       Kind = "no way"      // no leader of the pool is connected
	Unreachable Kind = "unreachable" // it was dialed where it is, without success
	Late        Kind = "late"        // nobody has answered in time
	Busy        Kind = "busy"        // the pool has as many connections as it may
	Full        Kind = "full"        // all pools together have
	Lost        Kind = "lost"        // the connection of the leader has ended, and with it all that it carried
	Broken      Kind = "broken"      // the connection has ended with an error at the pool's end
)

// Error says why a connection does not come about, or ends early. It is one line.
type Error struct {
	Kind    Kind
	Pool    string // "": none, or not known here
	Address string // "": of none
	Why     string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Pool != "" {
		b.WriteString("pool " + e.Pool + ": ")
	}
	if e.Address != "" {
		b.WriteString(e.Address + ": ")
	}
	b.WriteString(string(e.Kind))
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	return clean(b.String())
}

// Timeout reports whether it was too late, as net.Error does.
func (e *Error) Timeout() bool { return e.Kind == Late }

// Status is the code by which HTTP says it.
func (k Kind) Status() int {
	switch k {
	case Refused:
		return http.StatusForbidden
	case NoWay, Full:
		return http.StatusServiceUnavailable
	case Late:
		return http.StatusGatewayTimeout
	case Busy:
		return http.StatusTooManyRequests
	}
	return http.StatusBadGateway
}

// kindOf is what a leader means by the code of its answer.
func kindOf(status int) Kind {
	for _, k := range []Kind{Refused, Late, Busy} {
		if k.Status() == status {
			return k
		}
	}
	return Unreachable
}

// maxText bounds what is passed on of what others say, in bytes.
const maxText = 400

// clean is a text as one short line of printable ASCII: it may stand in a status line and in a log.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s[:min(len(s), maxText)])
	return strings.TrimSpace(s)
}
