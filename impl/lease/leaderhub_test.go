package lease

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
)

// desk serves a store to the hub of a node.
func desk(s *Store, node string) func(method, name, body string) (int, *coordinationv1.Lease) {
	mux := http.NewServeMux()
	own := s.Handler(func(*http.Request) string { return node })
	mux.Handle(Path+"/{name}", own)
	mux.Handle(Path, own)
	return func(method, name, body string) (int, *coordinationv1.Lease) {
		path := Path
		if name != "" {
			path += "/" + name
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body)))
		l := &coordinationv1.Lease{}
		_ = json.Unmarshal(w.Body.Bytes(), l)
		return w.Code, l
	}
}

func text(name, version, uid string) string {
	return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"kube-node-lease","name":"` +
		name + `","resourceVersion":"` + version + `","uid":"` + uid +
		`","annotations":{"openyurt.io/delegate-heartbeat":"true","huge":"x"}},"spec":{"holderIdentity":"` + name + `"}}`
}

// TestServe: a node's hub creates, reads and changes the Lease of its own node, under the rules of a Kubernetes API,
// and no other.
func TestServe(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	s := NewNodes(c)
	ask := desk(s, "edge-2")
	is := func(about string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", about, got, want)
		}
	}
	code, _ := ask("POST", "", text("edge-2", "", ""))
	is("no leader hub", code, 503)
	s.Open(true)
	code, _ = ask("GET", "edge-2", "")
	is("none yet", code, 404)
	code, _ = ask("POST", "", text("edge-3", "", ""))
	is("a Lease of another node", code, 400)
	code, _ = ask("GET", "edge-3", "")
	is("another node's", code, 403)
	code, _ = ask("PUT", "edge-3", text("edge-3", "1", ""))
	is("to write another node's", code, 403)
	code, _ = ask("POST", "", "{")
	is("half a Lease", code, 400)
	code, _ = ask("POST", "", text("edge-2", "", "")+strings.Repeat(" ", maxBody))
	is("one that is too long", code, 400)
	code, l := ask("POST", "", text("edge-2", "", ""))
	is("to create it", code, 201)
	if l.ResourceVersion == "" || l.UID == "" || l.Annotations[contract.DelegateHeartbeat] != contract.Delegated ||
		l.Annotations["huge"] != "" {
		t.Errorf("kept as %+v", l)
	}
	code, _ = ask("POST", "", text("edge-2", "", ""))
	is("to create it again", code, 409)
	code, _ = ask("PUT", "edge-2", text("edge-2", "1", string(l.UID)))
	is("at another version", code, 409)
	code, _ = ask("PUT", "edge-2", text("edge-2", l.ResourceVersion, "of-another-leader-hub"))
	is("of another leader hub", code, 409)
	code, next := ask("PUT", "edge-2", text("edge-2", l.ResourceVersion, string(l.UID)))
	is("to change it", code, 200)
	if next.ResourceVersion == l.ResourceVersion || next.UID != l.UID {
		t.Errorf("changed to %+v", next)
	}
	c.Step(forgetAfter + time.Second)
	code, _ = ask("PUT", "edge-2", text("edge-2", next.ResourceVersion, string(l.UID)))
	is("what nobody wrote for a while", code, 404)
}

// TestFollow tells of nodes that are cut off: what there is, what changes, what goes, and what is forgotten.
func TestFollow(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	s := NewNodes(c)
	s.Open(true)
	put := func(node string, delegated bool) {
		t.Helper()
		l, write := s.Of(node), s.Update
		if l == nil {
			l, write = &coordinationv1.Lease{}, s.Create
			l.Namespace, l.Name = contract.NodeLeaseNamespace, node
		}
		SetDelegated(l, delegated)
		if _, err := write(t.Context(), node, l); err != nil {
			t.Fatalf("%s: refused: %v", node, err)
		}
	}
	put("edge-2", true)
	put("edge-3", false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told, done := make(chan string), make(chan struct{})
	go func() {
		defer close(done)
		list := func(names []string) { told <- strings.Join(names, ",") }
		s.Delegated(ctx, list, func(node string, l *coordinationv1.Lease) {
			if l == nil {
				node = "-" + node
			}
			told <- node
		})
	}()
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := <-told; got != w {
				t.Fatalf("told %q, want %q", got, w)
			}
		}
	}
	expect("edge-2", "edge-2")
	put("edge-3", true)
	expect("edge-3")
	put("edge-2", false)
	expect("-edge-2")
	c.Step(forgetAfter + time.Second)
	expect("-edge-3")
	s.Open(false)
	<-done
	cancel()
	if s.Opened(ctx) || s.Of("edge-3") != nil {
		t.Error("closed, it keeps something")
	}
}
