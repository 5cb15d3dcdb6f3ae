package lead

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	documentsAnswer = time.Second            // for which the leader has to show them
	documentsRetry  = 250 * time.Millisecond // while it does not show all, at first; keys come when somebody needs them
	documentsAgain  = 5 * time.Minute        // until all are looked at again
)

// Documents are the pool's copies of API discovery at contract.DocumentsPath: those that the leader shows, or showed
// last. The zero value has none.
type Documents struct{ documents.Store }

// pull takes what an upstream shows, and returns what it does not.
func (d *Documents) pull(ctx context.Context, up *hop.Upstream, keys ...documents.Key) (missing []documents.Key) {
	ctx, cancel := context.WithTimeout(ctx, documentsAnswer)
	defer cancel()
	for _, k := range keys {
		doc, err := documents.Fetch(ctx, up.Client.Transport, up.URL.JoinPath(contract.DocumentsPath), k)
		if err == nil && up.Admit != nil {
			err = up.Admit()
		}
		if err != nil {
			missing = append(missing, k)
			continue
		}
		d.Store.Put(k, doc)
	}
	return missing
}

// Keep has copies of what an upstream shows, for the time without it, until ctx ends.
func (d *Documents) Keep(ctx context.Context, up *hop.Upstream, c clock.Clock) {
	for ctx.Err() == nil {
		missing := documents.Kept[:]
		for wait, end := documentsRetry, c.Now().Add(documentsAgain); ctx.Err() == nil &&
			c.Now().Before(end); wait = min(2*wait, documentsAgain) {
			if missing = d.pull(ctx, up, missing...); len(missing) == 0 {
				wait = documentsAgain
			}
			process.Pause(ctx, c, wait)
		}
	}
}

// Serve answers with the copy of now, if somebody is read who shows it.
func (d *Documents) Serve(read func() *hop.Upstream) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if k, err := documents.ParseKey(req.URL.Query()); err == nil && req.Method == http.MethodGet {
			if up := read(); up != nil {
				d.pull(req.Context(), up, k)
			}
		}
		d.Store.ServeHTTP(w, req)
	})
}
