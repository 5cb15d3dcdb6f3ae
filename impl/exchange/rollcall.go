package exchange

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/weir-edge/weir/impl/heartbeat"
)

// maxRollCall bounds what a request carries.
const maxRollCall = 2 * heartbeat.MaxRollText

// RollCall is where hubs hand in entries of their nodes, and the leader collects them. It is safe for concurrent use.
// The zero RollCall is ready.
type RollCall struct {
	mu   sync.Mutex
	desk heartbeat.RollCall
}

// HandIn takes an entry and returns the newest notice.
func (d *RollCall) HandIn(e heartbeat.Entry) (heartbeat.Notice, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.desk.HandIn(e)
}

// Exchange takes a notice and returns all entries, which are gone then.
func (d *RollCall) Exchange(n heartbeat.Notice) ([]heartbeat.Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.desk.Post(n); err != nil {
		return nil, err
	}
	return d.desk.Collect(), nil
}

// Handler serves it. node is the node whose hub asks, "" if somebody else does; leads reports whether it leads the
// pool.
func (d *RollCall) Handler(node func(*http.Request) string, leads func(node string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var out any
		var err error
		body := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxRollCall))
		switch by := node(req); {
		case req.Method == http.MethodPut && by != "":
			var e heartbeat.Entry
			if err = body.Decode(&e); err == nil {
				e.Node = by
				out, err = d.HandIn(e)
			}
		case req.Method == http.MethodPost && by != "" && leads(by):
			var n heartbeat.Notice
			if err = body.Decode(&n); err == nil {
				out, err = d.Exchange(n)
			}
		case req.Method != http.MethodPut && req.Method != http.MethodPost:
			w.Header().Set("Allow", "PUT, POST")
			http.Error(w, "only PUT and POST", http.StatusMethodNotAllowed)
			return
		default:
			http.Error(w, fmt.Sprintf("hubs hand in entries of their nodes, and the leader collects them: not node %q", by),
				http.StatusForbidden)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}
