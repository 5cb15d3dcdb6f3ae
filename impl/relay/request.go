package relay

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// request is one get, list or watch, checked.
type request struct {
	namespace string // "" is all of them, or a cluster-scoped resource
	name      string // set for get
	get       bool
	opts      metainternalversion.ListOptions
	version   uint64 // opts.ResourceVersion as a number
	history   uint64 // number of the one that version is of, if relay
	relay     bool   // the client is a relay that holds a state
	filter    filter
	out       output
}

// consistent reads are answered at the version reached (rule 3).
func (q *request) unset() bool { return q.opts.ResourceVersion == "" }

// parse reads a request for this relay's resource. Its errors are apierrors statuses, worded as kube-apiserver does.
func (r *Relay) parse(req *http.Request) (*request, error) {
	q := &request{}
	h, given, err := ParseHistory(req.Header)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	q.history, q.relay = h.Number, given
	if req.Method != http.MethodGet {
		return nil, apierrors.NewMethodNotSupported(r.groupResource(), strings.ToLower(req.Method))
	}
	if err := r.parsePath(q, req.URL.Path); err != nil {
		return nil, err
	}
	query := req.URL.Query()
	watch := !q.get && (query.Get("watch") == "1" || strings.EqualFold(query.Get("watch"), "true"))
	if err := checkQuery(query, watch, q.get); err != nil {
		return nil, err
	}
	if q.out, err = r.negotiate(req, watch, q.get); err != nil {
		return nil, err
	}
	if q.get {
		var opts metav1.GetOptions
		if err := metainternalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &opts); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		q.opts.ResourceVersion = opts.ResourceVersion
	} else {
		if err := metainternalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &q.opts); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		metainternalversion.SetListOptionsDefaults(&q.opts, true)
		if errs := validation.ValidateListOptions(&q.opts, true); len(errs) > 0 {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
		}
	}
	if q.version, err = parseVersion(q.opts.ResourceVersion); err != nil {
		return nil, err
	}
	if r.cfg.Fallback != nil && r.declared(q.opts.FieldSelector) {
		q.out.fallback = true
		return q, nil
	}
	q.filter, err = r.newFilter(q)
	return q, err
}

// declared tells whether a selector names fields of custom resources, which are those that the CRD declares in selectableFields.
func (r *Relay) declared(sel fields.Selector) bool {
	if r.cfg.Resource.builtin != nil || sel == nil {
		return false
	}
	return slices.ContainsFunc(sel.Requirements(), func(q fields.Requirement) bool {
		return q.Field != "metadata.name" && q.Field != "metadata.namespace"
	})
}

// checkQuery refuses parameters that kube-apiserver refuses although nothing here would use them.
func checkQuery(query url.Values, watch, get bool) error {
	if t := query.Get("timeout"); t != "" && !watch {
		if _, err := time.ParseDuration(t); err != nil {
			return apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
		}
	}
	if export := query.Get("export"); get && query.Has("export") && export != "0" && !strings.EqualFold(export, "false") {
		return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	return nil
}

func parseVersion(s string) (uint64, error) {
	v, err := wire.ParseVersion(s)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: strconv.ParseUint: parsing %q: invalid syntax", s, s))
	}
	return v, nil
}

func (r *Relay) parsePath(q *request, path string) error {
	res := r.cfg.Resource
	rest, ok := strings.CutPrefix(path, res.Path()+"/")
	parts := strings.Split(rest, "/")
	if len(parts) >= 3 && parts[0] == "namespaces" && res.Namespaced && parts[1] != "" {
		q.namespace, parts = parts[1], parts[2:]
	}
	if !ok || parts[0] != res.Resource || len(parts) > 2 {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", r.groupResource(), "", "the server could not find the requested resource", 0, true)
	}
	if len(parts) == 2 && parts[1] != "" {
		q.get, q.name = true, parts[1]
		if res.Namespaced && q.namespace == "" {
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", r.groupResource(), "", "the server could not find the requested resource", 0, true)
		}
	}
	return nil
}

func (r *Relay) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.cfg.Resource.Group, Resource: r.cfg.Resource.Resource}
}

// filter is what a request wants of a resource. The zero filter matches everything.
type filter struct {
	prefix string // of keys: "namespace/"
	key    string // of the one object that can match
	labels labels.Selector
	fields fields.Selector
	res    *Resource
}

func (r *Relay) newFilter(q *request) (filter, error) {
	f := filter{res: &r.cfg.Resource}
	if q.namespace != "" {
		f.prefix = q.namespace + "/"
	}
	if q.opts.LabelSelector != nil && !q.opts.LabelSelector.Empty() {
		f.labels = q.opts.LabelSelector
	}
	if q.opts.FieldSelector == nil || q.opts.FieldSelector.Empty() {
		return f, nil
	}
	sel, err := q.opts.FieldSelector.Transform(f.convertField)
	if err != nil {
		return f, apierrors.NewBadRequest(err.Error())
	}
	f.fields = sel
	if ns, ok := sel.RequiresExactMatch("metadata.namespace"); ok && f.prefix == "" && f.res.Namespaced {
		f.prefix = ns + "/"
	}
	if name, ok := sel.RequiresExactMatch("metadata.name"); ok && (f.prefix != "" || !f.res.Namespaced) {
		f.key = f.prefix + name
	}
	return f, nil
}

// convertField refuses field selectors that kube-apiserver refuses: an ignored selector would widen an answer (rule 8).
func (f *filter) convertField(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "metadata.namespace":
		return label, value, nil
	}
	b := f.res.builtin
	if b != nil && b.aliases[label] != "" {
		label = b.aliases[label]
	}
	if b == nil {
		return "", "", fmt.Errorf("field label not supported: %s", label)
	}
	if _, ok := b.fields[label]; ok {
		return label, value, nil
	}
	if b.fields == nil && b.group != "" {
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label, "metadata.name", "metadata.namespace")
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// fixed tells whether an object matches for as long as its labels stay.
func (f *filter) fixed() bool {
	return f.fields == nil || !slices.ContainsFunc(f.fields.Requirements(), func(q fields.Requirement) bool {
		return q.Field != "metadata.name" && q.Field != "metadata.namespace"
	})
}

// all tells whether the filter matches everything in its namespace.
func (f *filter) all() bool { return f.labels == nil && f.fields == nil }

func (f *filter) matches(o *wire.Object) bool {
	if o == nil || !strings.HasPrefix(o.Key, f.prefix) {
		return false
	}
	if f.labels != nil && !f.labels.Matches(o.Labels) {
		return false
	}
	return f.fields == nil || f.fields.Matches(objectFields{o, f.res})
}

// objectFields implements fields.Fields over an undecoded object.
type objectFields struct {
	o   *wire.Object
	res *Resource
}

func (f objectFields) Has(field string) bool { return true }

func (f objectFields) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.o.Name
	case "metadata.namespace":
		return f.o.Namespace
	}
	b := f.res.builtin
	v := wire.Path(f.o.Raw, b.fields[field]...)
	if b.bools[field] && v == "" {
		return "false"
	}
	return v
}

// minWatch is kube-apiserver's --min-request-timeout: a watch without timeoutSeconds lives that long to twice as long, and none here lives
// longer than that, since whoever may watch is asked when it begins.
const minWatch = 1800 * time.Second
