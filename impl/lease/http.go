package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/impl/contract"
)

// maxBody bounds what a request carries: a Lease is some hundred bytes.
const maxBody = 64 << 10

// Handler serves Leases as a Kubernetes API does, as far as kubelets and hubs use it. user is from whom a request is.
func (s *Store) Handler(user func(*http.Request) string) http.Handler {
	type verb func(ctx context.Context, user string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// may asks before anything is done.
	may := func(do func(w http.ResponseWriter, req *http.Request, by string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			by, err := user(req), error(nil)
			if name := req.PathValue("name"); s.May != nil && (name != "" || req.Method == http.MethodGet) {
				err = s.May(by, name)
			}
			if err == nil {
				err = do(w, req, by)
			}
			if err != nil {
				fail(w, err)
			}
		}
	}
	writes := func(do verb) http.HandlerFunc {
		return may(func(w http.ResponseWriter, req *http.Request, by string) error {
			lease, err := s.received(req)
			if err == nil {
				lease, err = do(req.Context(), by, lease)
			}
			if err != nil {
				return err
			}
			return reply(w, req, lease)
		})
	}
	const all = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+all, may(s.collection))
	mux.HandleFunc("POST "+all, writes(s.Create))
	mux.HandleFunc("PUT "+all+"/{name}", writes(s.Update))
	mux.HandleFunc("PATCH "+all+"/{name}", writes(s.Update))
	mux.HandleFunc("GET "+all+"/{name}", may(func(w http.ResponseWriter, req *http.Request, _ string) error {
		lease, err := s.Get(req.Context(), req.PathValue("namespace"), req.PathValue("name"))
		if err != nil {
			return err
		}
		return reply(w, req, lease)
	}))
	return mux
}

// collection lists or watches the Leases of a namespace: all, or those of nodes that others speak for.
func (s *Store) collection(w http.ResponseWriter, req *http.Request, _ string) error {
	q, namespace := req.URL.Query(), req.PathValue("namespace")
	delegated, version := q.Get("labelSelector") == contract.DelegateHeartbeat+"="+contract.Delegated,
		q.Get("resourceVersion")
	match := func(l *coordinationv1.Lease) bool {
		return l.Namespace == namespace && (!delegated || l.Labels[contract.DelegateHeartbeat] == contract.Delegated)
	}
	list := s.list(match)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if !q.Has("watch") {
		_ = json.NewEncoder(w).Encode(list)
		return nil
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
	_ = s.follow(req.Context(), version, match, show)
	return nil
}

// received is the Lease that a request would have.
func (s *Store) received(req *http.Request) (lease *coordinationv1.Lease, err error) {
	namespace, name := req.PathValue("namespace"), req.PathValue("name")
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("it has more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, err
	}
	if req.Method != http.MethodPatch {
		lease, err = Decode(cmp.Or(req.Header.Get("Content-Type"), runtime.ContentTypeJSON), body)
	} else if lease, err = s.Get(req.Context(), namespace, name); err == nil {
		err = merge(lease, body)
	}
	if err == nil && name != "" && name != lease.Name {
		err = fmt.Errorf("it is the Lease %s", lease.Name)
	}
	if err == nil && (req.Method == http.MethodPost) != (lease.ResourceVersion == "") {
		err = fmt.Errorf("%s with resourceVersion %.80q: want none to create it, and that of the Lease to change it",
			req.Method, lease.ResourceVersion)
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

func reply(w http.ResponseWriter, req *http.Request, lease *coordinationv1.Lease) error {
	contentType, body, err := Encode(lease, req.Header.Get("Accept"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	if req.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(body)
	return nil
}

func fail(w http.ResponseWriter, err error) {
	var known *apierrors.StatusError
	if !errors.As(err, &known) {
		known = apierrors.NewBadRequest(err.Error())
	}
	s := known.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s)
}
