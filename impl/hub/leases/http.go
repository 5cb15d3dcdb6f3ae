package leases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/hub/nodelease"
)

// maxBody bounds what a hub may send: a Lease is some hundred bytes.
const maxBody = 64 << 10

// Serve answers a request of a node's hub, as a Kubernetes API would: GET and PUT of its own Lease, and POST of it.
func (s *Store) Serve(node string, w http.ResponseWriter, req *http.Request) {
	name := req.PathValue("name")
	resource := schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}
	if name != "" && name != node {
		fail(w,
			apierrors.NewForbidden(resource, name, fmt.Errorf("the hub of node %s may read and write the Lease of its own node",
				node)))
		return
	}
	if req.Method == http.MethodGet {
		switch l := s.Get(node); {
		case !s.IsOpen():
			fail(w, closed())
		case l == nil:
			fail(w, apierrors.NewNotFound(resource, node))
		default:
			write(w, http.StatusOK, l)
		}
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("it has more than %d bytes", maxBody)
	}
	var l *coordinationv1.Lease
	if err == nil {
		l, err = nodelease.Decode(runtime.ContentTypeJSON, body)
	}
	if err == nil && l.Name != node {
		err = fmt.Errorf("its name is %.80q, want %s, the node of this hub", l.Name, node)
	}
	if err == nil && (req.Method == http.MethodPost) != (l.ResourceVersion == "") {
		err = fmt.Errorf("%s with resourceVersion %.80q: want none to create it, and that of the Lease to change it",
			req.Method, l.ResourceVersion)
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	out, refusal := s.Put(node, l)
	code := http.StatusOK
	if req.Method == http.MethodPost {
		code = http.StatusCreated
	}
	switch refusal {
	case Taken:
		write(w, code, out)
	case Conflict:
		fail(w, apierrors.NewConflict(resource, node, errors.New("it is at another version, or there already")))
	case Absent:
		fail(w, apierrors.NewNotFound(resource, node))
	case Closed:
		fail(w, closed())
	case Full:
		fail(w, apierrors.NewTooManyRequestsError("this leader hub keeps no more Leases"))
	}
}

func closed() *apierrors.StatusError {
	return apierrors.NewServiceUnavailable("this hub is no leader hub: it keeps no Leases of nodes")
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	write(w, int(s.Code), s)
}

func write(w http.ResponseWriter, code int, what any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(what)
}
