package pki

import (
	"fmt"
	"strings"
)

// MismatchError tells what in a request or a certificate is not as it has to be.
type MismatchError struct {
	Field   string // "common name"
	Value   string // what was found
	Allowed string // what is allowed
}

// shown is how much of a value is told: it comes from a stranger.
const shown = 200

// Error is one line.
func (m *MismatchError) Error() string {
	return fmt.Sprintf("%s: %q is not allowed: %s", m.Field, short(m.Value), m.Allowed)
}

func short(s string) string {
	if len(s) > shown {
		return s[:shown] + "…"
	}
	return s
}

func mismatch(field string, value any, allowed string) error {
	text := fmt.Sprint(value)
	if list, ok := value.([]string); ok {
		text = strings.Join(list, ", ")
	}
	return &MismatchError{Field: field, Value: text, Allowed: allowed}
}
