package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Config of a Server.
type Config struct {
	PolicyLag time.Duration // after which admission policies see a change of a ConfigMap
	// Deleted and Updated are told what was done, by whom, in the order in which it was. They must not wait, nor call the
	// Server.
	Deleted func(user string, o *Object)
	Updated func(user string, before, after *Object)
	Denied  func(user string, o *Object) // a delete that a policy refused
}

// Server is an apiserver. Its zero value is of no use; see New.
type Server struct {
	config Config
	kinds  []kind

	mu      sync.Mutex
	away    bool
	version uint64
	serial  int // of UIDs
	stores  map[string]*store
	params  map[string][]params
}

// New returns a Server without objects.
func New(c Config) *Server {
	s := &Server{config: c, kinds: kinds(), version: 1, stores: map[string]*store{}, params: map[string][]params{}}
	for _, k := range s.kinds {
		s.stores[k.GroupVersionResource.String()] = newStore(k)
	}
	return s
}

// As is how a user reaches the Server.
func (s *Server) As(user string) *rest.Config {
	return &rest.Config{
		Host: "http://cloud", Transport: door{s, user}, QPS: -1, // a wait for its turn could be one under a lock
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
}

// Away makes the Server unreachable, or starts it again: with all objects, but without the history that a watch could
// resume from.
func (s *Server) Away(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = yes
	for _, st := range s.stores {
		st.restart(s.version)
	}
}

// Load creates the objects of a file of manifests.
func (s *Server) Load(manifests string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, doc := range strings.Split(manifests, "\n---\n") {
		var o metav1.PartialObjectMetadata
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err == nil {
			err = json.Unmarshal(raw, &o)
		}
		if err != nil {
			return fmt.Errorf("load manifests: %w", err)
		}
		i := slices.IndexFunc(s.kinds, func(k kind) bool {
			return k.GroupVersion().String() == o.APIVersion && k.kind == o.Kind
		})
		if i < 0 {
			return fmt.Errorf("load manifests: kind %s of %s is not known here", o.Kind, o.APIVersion)
		}
		r := &request{
			Request: &http.Request{}, store: s.stores[s.kinds[i].GroupVersionResource.String()], namespace: o.Namespace,
			body: raw,
		}
		if _, err := s.create(r); err != nil {
			return fmt.Errorf("load %s %s: %w", o.Kind, o.Name, err)
		}
	}
	return nil
}

// Changed is the version of the last change of the objects of a resource: who has looked at that version need not look
// again.
func (s *Server) Changed(resource string) (version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.stores {
		if st.kind.Resource == resource {
			version = max(version, st.changedAt)
		}
	}
	return version
}

// Read decodes an object; false: there is none.
func (s *Server) Read(resource, namespace, name string, into any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.stores {
		if o := st.objects[key(namespace, name)]; st.kind.Resource == resource && o != nil {
			return json.Unmarshal(o.raw, into) == nil
		}
	}
	return false
}

// door is the way of one user to the Server.
type door struct {
	*Server

	user string
}

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if doc := d.discovery(strings.TrimSuffix(req.URL.Path, "/")); doc != nil {
		return answer(req, http.StatusOK, doc), nil
	}
	r, err := d.parse(req, d.user)
	if err == nil {
		var resp *http.Response
		if resp, err = d.serve(r); err == nil {
			return resp, nil
		}
	}
	status := apierrors.NewInternalError(err).Status()
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return answer(req, int(status.Code), status), nil
}

// serve answers a request.
func (s *Server) serve(r *request) (*http.Response, error) {
	switch {
	case r.Method == http.MethodGet && r.name != "":
		o := r.store.objects[key(r.namespace, r.name)]
		if o == nil {
			return nil, r.notFound()
		}
		return answer(r.Request, http.StatusOK, json.RawMessage(o.raw)), nil
	case r.Method == http.MethodGet && r.watch:
		return s.watch(r)
	case r.Method == http.MethodGet:
		return s.list(r), nil
	case r.Method == http.MethodPost && r.store.kind.forgets:
		return answer(r.Request, http.StatusCreated, json.RawMessage(r.body)), nil
	case r.Method == http.MethodPost:
		o, err := s.create(r)
		if err != nil {
			return nil, err
		}
		return answer(r.Request, http.StatusCreated, json.RawMessage(o.raw)), nil
	case r.Method == http.MethodPut, r.Method == http.MethodPatch:
		return s.update(r)
	case r.Method == http.MethodDelete && r.name != "":
		return s.remove(r)
	}
	return nil, apierrors.NewMethodNotSupported(r.store.kind.GroupResource(), r.Method)
}

func (s *Server) list(r *request) *http.Response {
	items := []json.RawMessage{}
	for _, o := range r.store.sorted() {
		if r.selects(o) {
			items = append(items, o.raw)
		}
	}
	return answer(r.Request, http.StatusOK, map[string]any{
		"apiVersion": r.store.kind.GroupVersion().String(), "kind": r.store.kind.kind + "List",
		"metadata": map[string]any{"resourceVersion": format(s.version)}, "items": items,
	})
}

func (s *Server) create(r *request) (*Object, error) {
	content, err := decode(r.body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	meta := metadata(content)
	name, _ := meta["name"].(string)
	s.serial++
	if prefix, ok := meta["generateName"].(string); ok && name == "" {
		name = fmt.Sprintf("%s%05d", prefix, s.serial)
	}
	if r.store.objects[key(r.namespace, name)] != nil {
		return nil, apierrors.NewAlreadyExists(r.store.kind.GroupResource(), name)
	}
	meta["name"], meta["uid"], meta["creationTimestamp"] = name, fmt.Sprintf("uid-%d", s.serial),
		time.Now().UTC().Format(time.RFC3339)
	if r.store.kind.namespaced {
		meta["namespace"] = r.namespace
	}
	return s.commit(r, nil, content)
}

func (s *Server) update(r *request) (*http.Response, error) {
	old := r.store.objects[key(r.namespace, r.name)]
	if old == nil {
		return nil, r.notFound()
	}
	content, err := r.merged(old)
	if err != nil {
		return nil, err
	}
	meta := metadata(content)
	if v, _ := meta["resourceVersion"].(string); v != "" && v != format(old.version) {
		return nil, apierrors.NewConflict(r.store.kind.GroupResource(), r.name,
			fmt.Errorf("it is at version %d, not at %s", old.version, v))
	}
	if uid, _ := meta["uid"].(string); uid != "" && uid != old.uid {
		return nil,
			apierrors.NewConflict(r.store.kind.GroupResource(), r.name, fmt.Errorf("its UID is %s, not %s", old.uid, uid))
	}
	r.keep(old, content)
	if r.store.kind.Resource == "pods" && r.subresource == "status" {
		if content, err = s.keepReady(r.user, old, content); err != nil {
			return nil, err
		}
	}
	o, err := s.commit(r, old, content)
	if err != nil {
		return nil, err
	}
	return answer(r.Request, http.StatusOK, json.RawMessage(o.raw)), nil
}

func (s *Server) remove(r *request) (*http.Response, error) {
	old := r.store.objects[key(r.namespace, r.name)]
	if old == nil {
		return nil, r.notFound()
	}
	if r.store.kind.Resource == "pods" {
		var p corev1.Pod
		if err := json.Unmarshal(old.raw, &p); err != nil {
			return nil, err
		}
		if s.keepsPod(r.user, &p) {
			if s.config.Denied != nil && !r.dryRun {
				s.config.Denied(r.user, old)
			}
			return nil, apierrors.NewForbidden(r.store.kind.GroupResource(), r.name, errKept)
		}
	}
	if !r.dryRun {
		s.version++
		r.store.remove(old, s.version)
		if s.config.Deleted != nil {
			s.config.Deleted(r.user, old)
		}
	}
	return answer(r.Request, http.StatusOK, json.RawMessage(old.raw)), nil
}

// commit stores content, unless it is what is there already or the request is a dry run.
func (s *Server) commit(r *request, old *Object, content map[string]any) (*Object, error) {
	next := s.version + 1
	if old != nil && same(old, content) {
		return old, nil
	}
	metadata(content)["resourceVersion"] = format(next)
	content["apiVersion"], content["kind"] = r.store.kind.GroupVersion().String(), r.store.kind.kind
	o, err := newObject(r.store.kind.Resource, next, content)
	if err != nil || r.dryRun {
		return o, err
	}
	s.version = next
	r.store.put(old, o)
	if r.store.kind.Resource == "configmaps" {
		s.remember(o)
	}
	if old != nil && s.config.Updated != nil {
		s.config.Updated(r.user, old, o)
	}
	return o, nil
}
