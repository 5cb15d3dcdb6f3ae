package denylist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pause"
)

const (
	watchLasts  = 12 * time.Hour   // each begins with the list once more, so that an old version is never asked for
	watchAgain  = 5 * time.Second  // after one that ended, or that did not come about for lack of a connection
	watchDenied = 30 * time.Second // after one that the cloud refused: there is no weir-manager, or it does not know this node
	watchRarely = 10 * time.Minute // after more of them
	maxEvent    = 2 * maxList
)

// Follow reads the list of the pool in the cloud, now and whenever it changes, until ctx ends. It is one watch of one object.
func (h *Held) Follow(ctx context.Context, cloud http.RoundTripper, c clock.Clock) {
	said, denied := "", watchDenied
	for ctx.Err() == nil {
		wait := watchAgain
		err := h.watch(ctx, cloud)
		var refused *refusedError
		if errors.As(err, &refused) {
			wait, denied = denied, min(2*denied, watchRarely)
			if s := err.Error(); s != said && ctx.Err() == nil {
				said = s
				h.Logger.Info("the cloud does not show which certificates are taken back; the pool may still know", "pool", h.Pool, "err", err)
			}
		} else {
			denied = watchDenied
		}
		pause.For(ctx, c, wait)
	}
}

// refusedError is an answer of the cloud that is no watch.
type refusedError struct{ error }

func (h *Held) watch(ctx context.Context, cloud http.RoundTripper) error {
	q := url.Values{
		"watch": {"1"}, "fieldSelector": {"metadata.name=" + contract.DenylistPrefix + h.Pool}, "timeoutSeconds": {strconv.Itoa(int(watchLasts / time.Second))},
	}
	u := "https://cloud/api/v1/namespaces/" + contract.KeyNamespace + "/configmaps?" + q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", "application/json")
	resp, err := cloud.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &refusedError{fmt.Errorf("watch ConfigMap %s/%s%s: %s", contract.KeyNamespace, contract.DenylistPrefix, h.Pool, resp.Status)}
	}
	bounded := &io.LimitedReader{R: resp.Body}
	frames := json.NewDecoder(bounded)
	for {
		bounded.N = maxEvent
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := frames.Decode(&event); err != nil {
			return fmt.Errorf("watch of the denylist: %w", err)
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			var m corev1.ConfigMap
			if err := json.Unmarshal(event.Object, &m); err != nil {
				return fmt.Errorf("watch of the denylist: %w", err)
			}
			if _, err := h.Take([]byte(m.Data[contract.DenylistKey])); err != nil {
				h.Logger.Error("the cloud's denylist does not count", "err", err)
			}
		case "DELETED": // what was taken back stays so
		default:
			var s metav1.Status
			_ = json.Unmarshal(event.Object, &s)
			return &refusedError{fmt.Errorf("watch of the denylist: %s %s", event.Type, s.Message)}
		}
	}
}
