package trust

import (
	"context"
	"net/http"
	"net/url"
	"time"

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
	s := h.shown.By(c, notice.ConfigMap(subject, contract.AuthorityPrefix+h.Pool, MaxText, h.Logger, func(m *corev1.ConfigMap) error {
		text := []byte(m.Data[contract.TrustKey])
		h.shown.Set(text)
		_, err := h.TakeOfCloud(text)
		return err
	}))
	s.Retry = h.retry
	s.Follow(ctx, cloud, c)
}

// Retry says that the cloud may show the text now: Follow asks again. It never blocks.
func (h *Held) Retry() {
	select {
	case h.retry <- struct{}{}:
	default:
	}
}

// Lacking is the chain of bundles that is held, if the cloud has forgotten the last of them; none: it has not, or that is not known.
func (h *Held) Lacking(now time.Time) []byte {
	shown, known := h.shown.Settled(now)
	last := h.now.Load().last()
	if !known || last == nil {
		return nil
	}
	if theirs, err := Last(shown, h.Pool); err == nil && theirs.Number >= last.Number {
		return nil
	}
	text, _ := h.Text()
	return text
}
