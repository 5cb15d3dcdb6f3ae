package shelter

import (
	"net/http"
	"testing"

	"github.com/weir-edge/weir/impl/identity"
)

// TestMayGetNode: who may get the Node is who the cloud has let read it, and nobody else that it knows.
func TestMayGetNode(t *testing.T) {
	judge, err := identity.New(identity.Config{
		Node: "edge-1", Cloud: http.DefaultTransport, Callers: http.DefaultTransport,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Node: "edge-1", Judge: judge}
	of := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	nodes := func(verb, name string) identity.Attributes {
		return identity.Attributes{Verb: verb, Version: "v1", Resource: "nodes", Name: name}
	}
	judge.Learn(of("lister"), false, nodes("list", ""), http.StatusOK)
	judge.Learn(of("getter"), false, nodes("get", "edge-1"), http.StatusOK)
	judge.Learn(of("neighbour"), false, nodes("get", "edge-2"), http.StatusOK)
	judge.Learn(of("app"), false, identity.Attributes{Verb: "list", Version: "v1", Resource: "pods"}, http.StatusOK)
	for token, want := range map[string]bool{
		"lister": true, "getter": true, "neighbour": false, "app": false, "stranger": false,
	} {
		if c.mayGetNode(of(token)) != want {
			t.Errorf("%s may get the Node: %v, want %v", token, !want, want)
		}
	}
	if c.mayGetNode(http.Header{}) {
		t.Error("a caller without a token may get the Node")
	}
}
