package denylist

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/notice"
)

func (h *Held) notice() notice.Notice {
	return notice.Notice{About: subject, Max: MaxText, Holder: h}
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

// Retry says that the cloud may show the list now: Follow asks again. It never blocks.
func (h *Held) Retry() {
	select {
	case h.retry <- struct{}{}:
	default:
	}
}

// Follow reads the list of the pool in the cloud, now and whenever it changes, until ctx ends.
func (h *Held) Follow(ctx context.Context, cloud http.RoundTripper, c clock.Clock) {
	s := h.shown.By(c, notice.ConfigMap(subject, contract.DenylistPrefix+h.Pool, maxList, h.Logger, func(m *corev1.ConfigMap) error {
		text := []byte(m.Data[contract.DenylistKey])
		h.shown.Set(text)
		_, err := h.Take(text)
		return err
	}))
	s.Retry = h.retry
	s.Follow(ctx, cloud, c)
}

// Lacking are the lists with something that the cloud has forgotten; none: it has not, or that is not known.
func (h *Held) Lacking(now time.Time) (text []byte) {
	shown, known := h.shown.Settled(now)
	if !known {
		return nil
	}
	theirs := Lines(shown)
	for _, l := range h.now.Load().lists {
		if !slices.ContainsFunc(theirs, func(line []byte) bool { return bytes.Equal(bytes.TrimSpace(line), bytes.TrimSpace(l.text)) }) {
			text = append(text, l.text...)
		}
	}
	return text
}
