package bulletin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	returnLook = 5 * time.Second // how often it is looked whether the cloud lacks something
	// within which hubs give it back, each at its own moment: one is enough, and the others see that.
	returnFirst = 20 * time.Second
	returnMost  = 10 * time.Minute
	maxReturned = 900 << 10 // bytes of all texts: an object has a megabyte
	answerTime  = 30 * time.Second
)

// Returner gives back to the cloud what it has forgotten, and the pool knows: it was restored from a backup.
// weir-manager judges what it gets by its own keys.
type Returner struct {
	Pool   string
	Cloud  http.RoundTripper // as the hub
	Board  Board
	Clock  clock.WithTicker
	Logger *slog.Logger
}

// Run looks again and again until ctx ends.
func (r Returner) Run(ctx context.Context) {
	tick := r.Clock.NewTicker(returnLook)
	defer tick.Stop()
	var due time.Time // zero: nothing lacks
	pause := returnFirst
	for {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
		data, now := r.lacks(), r.Clock.Now()
		switch {
		case len(data) == 0:
			due, pause = time.Time{}, returnFirst
		case due.IsZero():
			due = now.Add(rand.N(returnFirst))
		case !now.Before(due):
			given, err := r.give(ctx, data)
			if err != nil {
				r.Logger.Info("the cloud lacks what the pool knows, and does not take it; it is tried again", "err", err)
			} else if given {
				r.Logger.Warn("the cloud lacks what the pool knows: it was restored from a backup. It was given back",
					"pool", r.Pool, "what", slices.Sorted(maps.Keys(data)))
			}
			due, pause = now.Add(pause/2+rand.N(pause)), min(2*pause, returnMost)
		}
	}
}

func (r Returner) lacks() map[string]string {
	data, now, left := map[string]string{}, r.Clock.Now(), maxReturned
	for _, d := range r.Board {
		if text := d.Lacking(now); len(text) > 0 && len(text) <= left {
			data[d.Key], left = string(text), left-len(text)
		}
	}
	return data
}

// give writes it, unless it is there already.
func (r Returner) give(ctx context.Context, data map[string]string) (given bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	m := &corev1.ConfigMap{}
	if err := r.ask(ctx, http.MethodGet, nil, m); err != nil {
		return false, err
	}
	if maps.Equal(m.Data, data) {
		return false, nil
	}
	m.Data, m.ManagedFields = data, nil
	return true, r.ask(ctx, http.MethodPut, m, &corev1.ConfigMap{})
}

func (r Returner) ask(ctx context.Context, method string, sent, got *corev1.ConfigMap) error {
	var body []byte
	var err error
	if sent != nil {
		if body, err = json.Marshal(sent); err != nil {
			return err
		}
	}
	name := contract.ReturnedPrefix + r.Pool
	req, err := http.NewRequestWithContext(ctx, method, "https://cloud/api/v1/namespaces/"+contract.KeyNamespace+
		"/configmaps/"+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", "application/json")
	if sent != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.Cloud.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 2*maxReturned+maxMeta))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s ConfigMap %s/%s: %s: %.200s", method, contract.KeyNamespace, name, resp.Status, text)
	}
	return json.Unmarshal(text, got)
}
