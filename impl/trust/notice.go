package trust

import (
	"context"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/notice"
)

// holder is a Held as package notice wants it.
type holder struct{ *Held }

// Changed implements notice.Holder.
func (h holder) Changed() <-chan struct{} { return h.Changes() }

func (h *Held) notice() notice.Notice {
	return notice.Notice{About: subject, Max: MaxText, Holder: holder{h}}
}

// Share exchanges by a function, now, often, and at once when something changes, until ctx ends.
func (h *Held) Share(ctx context.Context, c clock.Clock, exchange func()) {
	h.notice().Share(ctx, c, exchange)
}

// ServeHTTP shows what is held, and takes what somebody else holds. Who may ask is the caller's business; who signed is this one's.
func (h *Held) ServeHTTP(w http.ResponseWriter, req *http.Request) { h.notice().ServeHTTP(w, req) }

// Exchange takes what another one of the pool holds, and gives it what it lacks. at is where that one serves.
func (h *Held) Exchange(ctx context.Context, by http.RoundTripper, at *url.URL) error {
	return h.notice().Exchange(ctx, by, at)
}

// Follow reads the text of the pool in the cloud, now and whenever it changes, until ctx ends.
func (h *Held) Follow(ctx context.Context, cloud http.RoundTripper, c clock.Clock) {
	notice.ConfigMap(subject, contract.AuthorityPrefix+h.Pool, MaxText, h.Logger, func(m *corev1.ConfigMap) error {
		_, err := h.TakeOfCloud([]byte(m.Data[contract.TrustKey]))
		return err
	}).Follow(ctx, cloud, c)
}
