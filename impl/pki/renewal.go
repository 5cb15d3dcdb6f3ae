package pki

import (
	"crypto/x509"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"
)

// Renewal says when certificates are due. Seed is the holder's own: two holders whose certificates were signed together
// renew them apart.
type Renewal struct {
	Clock clock.PassiveClock
	Seed  uint64
}

const (
	earliestRenewal = 0.7 // of a life
	latestRenewal   = 0.8
)

// At is when a certificate is due. It is the same however often it is asked for.
func (r Renewal) At(c *x509.Certificate) time.Time {
	var serial uint64
	if c.SerialNumber != nil {
		for _, b := range c.SerialNumber.Bytes() {
			serial = serial*31 + uint64(b)
		}
	}
	part := earliestRenewal + (latestRenewal-earliestRenewal)*rand.New(rand.NewPCG(r.Seed, serial)).Float64()
	return c.NotBefore.Add(time.Duration(part * float64(c.NotAfter.Sub(c.NotBefore))))
}

// Due reports whether a certificate has to be renewed now.
func (r Renewal) Due(c *x509.Certificate) bool { return !r.Clock.Now().Before(r.At(c)) }
