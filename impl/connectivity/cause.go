package connectivity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/weir-edge/weir/impl/digest"
)

// Stage is how far an attempt came.
type Stage int

// The stages.
const (
	Nothing   Stage = iota
	Connected       // TCP has a connection
	Secured         // TLS has one: the other end has proved who it is
)

// ErrStranger says that who answers has a certificate that is good, and of somebody else.
var ErrStranger = errors.New("it is not the one that was called")

// ErrRefused says that the other end does not take the certificate of this hub.
var ErrRefused = errors.New("it does not know this hub")

// Cause is why a way fails, in one word of package digest: an attempt came as far as a stage, and ended by an error.
func Cause(at Stage, err error) string {
	switch word := Word(err); {
	case word == digest.Timeout && at == Connected:
		return digest.Mute
	case word == digest.Timeout && at == Secured:
		return digest.Stalls
	default:
		return word
	}
}

// Word is the cause of an error of a connection of which no more is known.
func Word(err error) string {
	var dns *net.DNSError
	var alert tls.AlertError
	var bad *tls.CertificateVerificationError
	var ended x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	var late net.Error
	switch {
	case errors.As(err, &dns):
		return digest.Unnamed
	case errors.Is(err, syscall.ECONNREFUSED):
		return digest.Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return digest.Unreachable
	case errors.As(err, &ended) && early(ended):
		return digest.Clock
	case errors.Is(err, ErrStranger), errors.As(err, &other), errors.As(err, &unknown),
		errors.As(err, &ended) && ended.Reason == x509.IncompatibleUsage:
		return digest.Stranger
	case errors.As(err, &bad), errors.As(err, &alert), errors.As(err, &ended),
		errors.Is(err, ErrRefused):
		return digest.Certificate
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout(),
		errors.Is(err, syscall.ETIMEDOUT):
		return digest.Timeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return digest.Broken
	}
	return digest.Other
}

// early reports whether a certificate is not valid yet. Package x509 has one reason for both ends.
func early(e x509.CertificateInvalidError) bool {
	return e.Reason == x509.Expired && strings.Contains(e.Detail, " is before ")
}
