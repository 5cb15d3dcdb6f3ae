package inmemory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/nodelease"
)

// maxBody bounds what a request carries: a Lease is some hundred bytes.
const maxBody = 1 << 20

// Handler serves Leases as a Kubernetes API does, as far as kubelets and hubs use it. who tells which user a request is
// from.
func (l *Leases) Handler(who func(*http.Request) string) http.Handler {
	type write func(ctx context.Context, by string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	writes := func(do write) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			lease, err := l.received(req)
			if err == nil {
				lease, err = do(req.Context(), who(req), lease)
			}
			reply(w, req, lease, err)
		}
	}
	const all = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+all, l.collection)
	mux.HandleFunc("POST "+all, writes(l.Create))
	mux.HandleFunc("PUT "+all+"/{name}", writes(l.Update))
	mux.HandleFunc("PATCH "+all+"/{name}", writes(l.Update))
	mux.HandleFunc("GET "+all+"/{name}", func(w http.ResponseWriter, req *http.Request) {
		lease, err := l.Get(req.Context(), req.PathValue("namespace"), req.PathValue("name"))
		reply(w, req, lease, err)
	})
	return mux
}

// collection lists or watches the Leases of a namespace: all, or those of nodes that others speak for.
func (l *Leases) collection(w http.ResponseWriter, req *http.Request) {
	q, namespace := req.URL.Query(), req.PathValue("namespace")
	delegated, version := q.Get("labelSelector") == contract.DelegateHeartbeat+"="+contract.Delegated,
		q.Get("resourceVersion")
	match := func(l *coordinationv1.Lease) bool {
		return l.Namespace == namespace && (!delegated || l.Labels[contract.DelegateHeartbeat] == contract.Delegated)
	}
	list := l.list(match)
	w.Header().Set("Content-Type", "application/json")
	if !q.Has("watch") {
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	show := func(kind watch.EventType, lease *coordinationv1.Lease) error {
		if err := json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": lease}); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	_ = http.NewResponseController(w).Flush()
	if version == "" { // what there is, and then what changes
		version = list.ResourceVersion
		for i := range list.Items {
			_ = show(watch.Added, &list.Items[i])
		}
	}
	_ = l.follow(req.Context(), version, match, show)
}

// received is the Lease that a request would have.
func (l *Leases) received(req *http.Request) (lease *coordinationv1.Lease, err error) {
	namespace, name := req.PathValue("namespace"), req.PathValue("name")
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		return nil, err
	}
	if req.Method != http.MethodPatch {
		lease, err = nodelease.Decode(req.Header.Get("Content-Type"), body)
	} else if lease, err = l.Get(req.Context(), namespace, name); err == nil {
		err = merge(lease, body)
	}
	if err == nil && name != "" && name != lease.Name {
		err = fmt.Errorf("it is the Lease %s", lease.Name)
	}
	if err != nil {
		return nil, err
	}
	lease.Namespace = namespace
	return lease, nil
}

// merge applies a merge patch, as far as Leases need it: maps are merged, and a null takes a key out.
func merge(lease *coordinationv1.Lease, patch []byte) error {
	err := json.Unmarshal(patch, lease)
	for _, m := range []map[string]string{lease.Annotations, lease.Labels} {
		maps.DeleteFunc(m, func(_, value string) bool { return value == "" })
	}
	return err
}

func reply(w http.ResponseWriter, req *http.Request, lease *coordinationv1.Lease, err error) {
	var contentType string
	var body []byte
	if err == nil {
		contentType, body, err = nodelease.Encode(lease, req.Header.Get("Accept"))
	}
	if err != nil {
		var s *apierrors.StatusError
		if !errors.As(err, &s) {
			s = apierrors.NewBadRequest(err.Error())
		}
		answer.Write(w, s)
		return
	}
	w.Header().Set("Content-Type", contentType)
	if req.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(body)
}
