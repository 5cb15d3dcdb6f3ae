package wire

import "errors"

// MalformedError is a body or frame from upstream that is not what the Kubernetes API sends.
type MalformedError struct {
	What string // what was being read, e.g. "watch frame"
	Err  error
}

func (e *MalformedError) Error() string { return "malformed " + e.What + ": " + e.Err.Error() }
func (e *MalformedError) Unwrap() error { return e.Err }

func malformed(what string, err error) error { return &MalformedError{What: what, Err: err} }

var errNoName = errors.New("object has no metadata.name")
