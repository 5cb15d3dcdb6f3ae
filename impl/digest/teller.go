package digest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	look      = 2 * time.Second // how often it is looked whether something is to be told
	first     = 5 * time.Second // after which it is tried again
	longest   = 10 * time.Minute
	maxAnswer = 256 << 10
	patience  = 30 * time.Second
)

// Teller writes on a Node what its hub holds.
type Teller struct {
	Node   string
	Cloud  http.RoundTripper // as the node
	Read   func() Holding
	Clock  clock.WithTicker
	Logger *slog.Logger
}

// Run tells of each change until ctx ends. What changes several times within some seconds is told once. What fails is
// tried again more and more rarely.
func (t Teller) Run(ctx context.Context) {
	tick := t.Clock.NewTicker(look)
	defer tick.Stop()
	var seen, told string
	var next time.Time
	pause, said := first, false
	for {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
		text := t.Read().Text()
		if text != seen {
			seen = text
			continue
		}
		if text == "" || text == told || t.Clock.Now().Before(next) {
			continue
		}
		if err := t.tell(ctx, text); err != nil {
			if !said && ctx.Err() == nil {
				said = true
				t.Logger.Info("the Node does not say yet what this hub holds; it is tried again", "err", err)
			}
			next, pause = t.Clock.Now().Add(pause/2+rand.N(pause)), min(2*pause, longest)
			continue
		}
		told, next, pause, said = text, time.Time{}, first, false
	}
}

func (t Teller) tell(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{contract.HoldsAnnotation: text}},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://cloud/api/v1/nodes/"+url.PathEscape(t.Node),
		bytes.NewReader(patch))
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Content-Type", "application/merge-patch+json")
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1") // a whole Node has its images
	resp, err := t.Cloud.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("annotate node %s: %s: %.200s", t.Node, resp.Status, answer)
	}
	return err
}
