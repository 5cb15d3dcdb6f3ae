package rest

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// query is one get, list or watch, checked.
type query struct {
	*request.Request

	opts     metainternalversion.ListOptions
	at       relay.At // opts.ResourceVersion; its History is nil unless the client is a relay that holds a state
	selector relay.Selector
	out      output
}

// check reads what a request wants of the source. Its errors are apierrors statuses, worded as kube-apiserver does.
func (h *Handler) check(header http.Header, asked *request.Request) (*query, error) {
	q := &query{Request: asked}
	history, given, err := ParseHistory(header)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if given {
		q.at.History = &history
	}
	if asked.Method != http.MethodGet {
		return nil, apierrors.NewMethodNotSupported(h.Resource().GroupResource(), strings.ToLower(asked.Method))
	}
	if !h.has(asked) {
		return nil, h.unknown()
	}
	if err := q.parameters(); err != nil {
		return nil, err
	}
	if q.out, err = h.negotiate(header, asked); err != nil {
		return nil, err
	}
	if q.opts, err = asked.Options(); err != nil && asked.Verb != "get" {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if asked.Odd {
		return nil, h.unknown()
	}
	if asked.Verb == "get" { // all other parameters are those of collections
		q.at.Version, err = parseVersion(q.Query.Get("resourceVersion"))
		return q, err
	}
	metainternalversion.SetListOptionsDefaults(&q.opts, true)
	if errs := validation.ValidateListOptions(&q.opts, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if q.at.Version, err = parseVersion(q.opts.ResourceVersion); err != nil {
		return nil, err
	}
	q.selector, err = h.Select(asked.In(), q.opts.LabelSelector, q.opts.FieldSelector)
	if err != nil && h.Fallback != nil && !h.Resource().Known() { // fields that a CRD declares in selectableFields
		q.out.fallback, err = true, nil
	}
	return q, err
}

// has reports whether a request is about objects of the source.
func (h *Handler) has(asked *request.Request) bool {
	res, in := h.Resource(), asked.In()
	return asked.IsResource && asked.Subresource == "" && asked.Resource == request.Resource{
		Group: res.Group, Version: res.Version, Name: res.Resource,
	} &&
		(in == "" || res.Namespaced) && (asked.Name == "" || in != "" || !res.Namespaced)
}

func (h *Handler) unknown() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", h.Resource().GroupResource(), "",
		"the server could not find the requested resource", 0, true)
}

// parameters refuses parameters that kube-apiserver refuses although nothing here would use them.
func (q *query) parameters() error {
	if t := q.Query.Get("timeout"); t != "" && q.Verb != "watch" {
		if _, err := time.ParseDuration(t); err != nil {
			return apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
		}
	}
	if q.Verb == "get" && q.IsTrue("export") {
		return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	return nil
}

func parseVersion(s string) (uint64, error) {
	v, err := wire.ParseVersion(s)
	if err != nil {
		return 0,
			apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: strconv.ParseUint: parsing %q: invalid syntax", s, s))
	}
	return v, nil
}
