// Package desk shows the desk of a pool's roll call over HTTP: hubs hand in entries of their own nodes, and the leader
// collects them and posts what weir-manager has answered. Package roll has what that means. A coordinator has one, and
// so has a leader hub. It is in memory: what is lost with it comes again with the next heartbeats. It starts no
// goroutine.
//
//	PUT   by a hub: the entry of its node; the answer is the newest notice
//	POST  by the leader: a notice, or an empty one; the answer is all entries, which are gone then
package desk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/weir-edge/weir/impl/roll"
)

// maxBody bounds what a request carries.
const maxBody = 2 * roll.MaxText

// Desk is one that several may use. The zero Desk is ready.
type Desk struct {
	mu   sync.Mutex
	desk roll.Desk
}

// HandIn takes an entry and returns the newest notice.
func (d *Desk) HandIn(e roll.Entry) (roll.Notice, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.desk.HandIn(e)
}

// Exchange takes a notice and returns all entries, which are gone then.
func (d *Desk) Exchange(n roll.Notice) ([]roll.Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.desk.Post(n); err != nil {
		return nil, err
	}
	return d.desk.Collect(), nil
}

// Handler serves it. node is the node whose hub asks, "" if somebody else does; leads reports whether it leads the
// pool.
func (d *Desk) Handler(node func(*http.Request) string, leads func(node string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var out any
		var err error
		body := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxBody))
		switch by := node(req); {
		case req.Method == http.MethodPut && by != "":
			var e roll.Entry
			if err = body.Decode(&e); err == nil {
				e.Node = by
				out, err = d.HandIn(e)
			}
		case req.Method == http.MethodPost && by != "" && leads(by):
			var n roll.Notice
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
