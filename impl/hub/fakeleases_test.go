package hub

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/nodelease"
)

// fakeLeases are Leases of nodes as kube-apiserver keeps them: with versions, preconditions, merge patches, both encodings, and watches of those that are delegated.
type fakeLeases struct {
	t    testing.TB
	user func(*http.Request) string

	mu       sync.Mutex
	version  int
	leases   map[string]*coordinationv1.Lease
	writes   []leaseWrite
	watchers map[chan leaseChange]struct{}
}

// leaseWrite is one write that was applied. Its order is among those of all stores of a test.
type leaseWrite struct {
	order     int64
	user      string
	lease     *coordinationv1.Lease
	delegated bool
}

type leaseChange struct {
	Type   string                `json:"type"`
	Object *coordinationv1.Lease `json:"object"`
}

var leaseWrites atomic.Int64

func newFakeLeases(t testing.TB, user func(*http.Request) string) *fakeLeases {
	return &fakeLeases{t: t, user: user, version: 100, leases: map[string]*coordinationv1.Lease{}, watchers: map[chan leaseChange]struct{}{}}
}

func (f *fakeLeases) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, nodelease.Path), "/")
	if name == "" && req.Method == http.MethodGet {
		f.collection(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stored := f.leases[name]
	group := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	var in *coordinationv1.Lease
	switch {
	case req.Method == http.MethodPost:
		if in, err = nodelease.Decode(req.Header.Get("Content-Type"), body); err == nil && f.leases[in.Name] != nil {
			answer.Write(w, apierrors.NewAlreadyExists(group, in.Name))
			return
		}
	case stored == nil:
		answer.Write(w, apierrors.NewNotFound(group, name))
		return
	case req.Method == http.MethodPut:
		in, err = nodelease.Decode(req.Header.Get("Content-Type"), body)
	case req.Method == http.MethodPatch:
		in = stored.DeepCopy()
		err = json.Unmarshal(body, in) // good enough for what is sent: maps are merged
		if strings.Contains(string(body), `"`+contract.DelegateHeartbeat+`":null`) {
			nodelease.SetDelegated(in, false)
		}
	}
	if err != nil {
		f.t.Errorf("%s %s: %v", req.Method, req.URL.Path, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if in != nil {
		if stored != nil && in.ResourceVersion != stored.ResourceVersion {
			answer.Write(w, apierrors.NewConflict(group, name, errors.New("the object has been modified")))
			return
		}
		stored = f.put(in, f.user(req))
	}
	contentType, out, err := nodelease.Encode(stored, req.Header.Get("Accept"))
	check(f.t, err)
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(out)
}

// put stores a Lease and tells watchers of those with the label.
func (f *fakeLeases) put(l *coordinationv1.Lease, user string) *coordinationv1.Lease {
	f.version++
	l = l.DeepCopy()
	l.TypeMeta = metav1.TypeMeta{Kind: nodelease.Kind.Kind, APIVersion: nodelease.Kind.APIVersion}
	l.Namespace, l.ResourceVersion, l.UID = contract.NodeLeaseNamespace, strconv.Itoa(f.version), types.UID("uid-"+l.Name)
	was := f.leases[l.Name] != nil && f.leases[l.Name].Labels[contract.DelegateHeartbeat] != ""
	f.leases[l.Name] = l
	f.writes = append(f.writes, leaseWrite{leaseWrites.Add(1), user, l, nodelease.IsDelegated(l)})
	kind := "MODIFIED"
	switch is := l.Labels[contract.DelegateHeartbeat] != ""; {
	case !is && !was:
		return l
	case !was:
		kind = "ADDED"
	case !is:
		kind = "DELETED"
	}
	for ch := range f.watchers {
		ch <- leaseChange{kind, l}
	}
	return l
}

func (f *fakeLeases) collection(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	if q.Get("labelSelector") != contract.DelegateHeartbeat+"="+contract.Delegated {
		f.t.Errorf("all Leases are asked for: %s", req.URL)
	}
	f.mu.Lock()
	if q.Get("watch") == "" {
		list := coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}}
		for _, l := range f.leases {
			if l.Labels[contract.DelegateHeartbeat] != "" {
				list.Items = append(list.Items, *l)
			}
		}
		f.mu.Unlock()
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	changes := make(chan leaseChange, 1000)
	f.watchers[changes] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, changes)
	}()
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case c := <-changes:
			_ = json.NewEncoder(w).Encode(c)
			w.(http.Flusher).Flush()
		case <-req.Context().Done():
			return
		}
	}
}

// get returns a Lease, nil if there is none.
func (f *fakeLeases) get(name string) *coordinationv1.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leases[name]
}

// written are the writes so far.
func (f *fakeLeases) written() []leaseWrite {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]leaseWrite(nil), f.writes...)
}
