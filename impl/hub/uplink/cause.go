package uplink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/weir-edge/weir/impl/digest"
)

// Cause is why a probe failed, in one word of package digest.
func Cause(err error) string {
	var dns *net.DNSError
	var alert tls.AlertError
	var bad *tls.CertificateVerificationError
	var ended x509.CertificateInvalidError
	var stranger x509.UnknownAuthorityError
	var other x509.HostnameError
	var late net.Error
	switch {
	case errors.As(err, &dns):
		return digest.Unnamed
	case errors.Is(err, syscall.ECONNREFUSED):
		return digest.Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return digest.Unreachable
	case errors.As(err, &bad), errors.As(err, &alert), errors.As(err, &ended), errors.As(err, &stranger),
		errors.As(err, &other):
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
