package api

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// request is one that was understood.
type request struct {
	*http.Request

	user                         string
	store                        *store
	namespace, name, subresource string
	body                         []byte

	watch, initial, dryRun bool
	from                   uint64 // resourceVersion; 0: none
	labels                 labels.Selector
	fields                 fields.Selector
}

// parse understands a request for a resource.
func (s *Server) parse(req *http.Request, user string) (*request, error) {
	r := &request{Request: req, user: user}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	gv := schema.GroupVersion{}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv.Group, gv.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, req.URL.Path)
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.store = s.stores[gv.WithResource(parts[0]).String()]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	if r.store == nil || r.subresource != "" && (r.subresource != "status" || !r.store.kind.status) {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gv.Group, Resource: parts[0]}, r.name)
	}
	q := req.URL.Query()
	r.watch, _ = strconv.ParseBool(q.Get("watch"))
	r.initial, _ = strconv.ParseBool(q.Get("sendInitialEvents"))
	r.dryRun = q.Get("dryRun") != ""
	var err error
	if v := q.Get("resourceVersion"); v != "" {
		if r.from, err = strconv.ParseUint(v, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if r.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if r.fields, err = fields.ParseSelector(q.Get("fieldSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if req.Body != nil {
		if r.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	if req.Method == http.MethodDelete && bytes.Contains(r.body, []byte(`"dryRun":["All"]`)) {
		r.dryRun = true
	}
	return r, nil
}

func (r *request) notFound() error {
	return apierrors.NewNotFound(r.store.kind.GroupResource(), r.name)
}

// selects reports whether a list or a watch would show an object.
func (r *request) selects(o *Object) bool {
	return (r.namespace == "" || r.namespace == o.Namespace) && r.labels.Matches(labels.Set(o.labels)) &&
		r.fields.Matches(fields.Set{"metadata.name": o.Name, "metadata.namespace": o.Namespace, "spec.nodeName": o.Node})
}

// merged is what an update or a patch makes of an object.
func (r *request) merged(old *Object) (map[string]any, error) {
	if r.Method == http.MethodPut {
		content, err := decode(r.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return content, nil
	}
	switch kind := types.PatchType(r.Header.Get("Content-Type")); kind {
	case types.MergePatchType:
		content, err := decode(old.raw)
		if err != nil {
			return nil, err
		}
		patch, err := decode(r.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return merge(content, patch), nil
	case types.StrategicMergePatchType:
		raw, err := strategicpatch.StrategicMergePatch(old.raw, r.body, r.store.kind.of)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return decode(raw)
	default:
		return nil, apierrors.NewBadRequest("patch of type " + string(kind) + ": want a merge patch, or a strategic one")
	}
}

// keep undoes what a request may not change: status with the rest, the rest with status.
func (r *request) keep(old *Object, content map[string]any) {
	was := old.content
	switch {
	case !r.store.kind.status:
	case r.subresource == "status":
		status, ok := content["status"]
		clear(content)
		maps.Copy(content, was)
		content["metadata"] = maps.Clone(metadata(was))
		if delete(content, "status"); ok {
			content["status"] = status
		}
	default:
		delete(content, "status")
		if status, ok := was["status"]; ok {
			content["status"] = status
		}
	}
}

// merge is RFC 7386.
func merge(into, patch map[string]any) map[string]any {
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(into, k)
		case map[string]any:
			below, _ := into[k].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			into[k] = merge(below, v)
		default:
			into[k] = v
		}
	}
	return into
}

func decode(raw []byte) (content map[string]any, err error) {
	err = json.Unmarshal(raw, &content)
	if content == nil {
		content = map[string]any{}
	}
	return content, err
}

func metadata(content map[string]any) map[string]any {
	m, _ := content["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		content["metadata"] = m
	}
	return m
}

// answer is a response.
func answer(req *http.Request, code int, body any) *http.Response {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // of types that can always be marshalled
	}
	return respond(req, code, io.NopCloser(bytes.NewReader(raw)))
}

func respond(req *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: req,
	}
}
