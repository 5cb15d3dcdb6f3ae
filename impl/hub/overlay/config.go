package overlay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"iter"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay"
)

// Ways are those to the desks of the pool: a pooldoor.Moved.
type Ways interface {
	// Exchange hands in what say gives, with contents if whole is set, and reads what others have said. ok: all that the
	// pool has was read.
	Exchange(ctx context.Context, say func(whole bool) *moved.Signed) (all []moved.Signed, ok bool)
	Behind() bool // there is more to read or to hand in
	Forget()      // all is read again
}

// Config is what an Overlay is made of. All of it is needed.
type Config struct {
	Node, Pool string
	Dir        string // for data
	Boot       string // which boot of this machine it is; "": nobody knows
	Ways       Ways
	Statuses   iter.Seq2[*corev1.Pod, *corev1.PodStatus] // that wait for the cloud, with the pods as the cloud showed them
	Pods       iter.Seq[*corev1.Pod]                     // of this node, as the cloud showed them
	Cert       interface{ Get() *tls.Certificate }       // of this hub in its pool; nil: there is none yet
	Verify     func(chain []*x509.Certificate) error     // of another hub
	Away       func() (yes bool, until context.Context)  // this node is cut off
	Unknown    func() bool                               // nothing is known of the cloud yet
	Relay      func(resource string) *relay.Relay        // nil: there is none
	Now        func() time.Time                          // by which certificates are judged
	Clock      clock.WithTicker
	Logger     *slog.Logger
}
