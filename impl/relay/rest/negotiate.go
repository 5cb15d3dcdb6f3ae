package rest

import (
	"mime"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// Clause is one media range of an Accept header.
type Clause struct {
	Media  string
	Params map[string]string
	q      float64
}

// ParseAccept reads an Accept header, the most wanted first. What cannot be read is left out.
func ParseAccept(header string) []Clause {
	var out []Clause
	for _, part := range strings.Split(header, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		c := Clause{Media: media, Params: params, q: 1}
		if s, ok := params["q"]; ok {
			if c.q, err = strconv.ParseFloat(s, 64); err != nil {
				c.q = 1 // as goautoneg, which kube-apiserver reads it with; there q=0 is the least wanted, not refused
			}
		}
		out = append(out, c)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].q > out[j].q })
	return out
}

// negotiate picks the form of the answer from the Accept header as kube-apiserver does: the first clause that can be
// served wins, an empty header means JSON. A clause that only Fallback can serve is passed over while nobody is behind
// Fallback.
func (h *Handler) negotiate(header http.Header, asked *request.Request) (output, error) {
	watch, query := asked.Verb == "watch", asked.Query
	plain := output{
		media: mediaJSON, gzip: strings.Contains(header.Get("Accept-Encoding"), "gzip"),
		pretty: !watch && (query.Get("pretty") == "1" || strings.EqualFold(query.Get("pretty"), "true")),
	}
	clauses := ParseAccept(strings.Join(header.Values("Accept"), ","))
	if strings.TrimSpace(strings.Join(header.Values("Accept"), "")) == "" {
		clauses = []Clause{{Media: mediaJSON}}
	}
	alone := h.Fallback == nil || h.Alone != nil && h.Alone()
	known := false // by Fallback
	for _, c := range clauses {
		o := plain
		switch c.Media {
		case mediaProtobuf:
			o.media = mediaProtobuf
			if !h.Resource().Known() && c.Params["as"] == "" {
				continue // custom resources exist in JSON only
			}
		case wire.DeltaMedia:
			if !watch || c.Params["as"] != "" {
				continue
			}
			o.delta, o.media = true, mediaOf(h.Resource())
			o.since, _ = wire.ParseVersion(c.Params[wire.DeltaSince]) // 0: all comes
		case mediaJSON, "*/*":
		case mediaYAML:
			if watch {
				continue
			}
			o.fallback = true
		default:
			continue
		}
		if !o.transform(c.Params, asked.Verb != "list") {
			continue
		}
		if o.shape == table {
			o.include = metav1.IncludeObjectPolicy(query.Get("includeObject"))
			known := []metav1.IncludeObjectPolicy{"", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject}
			if !slices.Contains(known, o.include) {
				return o, apierrors.NewBadRequest(`Unable to convert to Table as requested: includeObject: Invalid value: "` +
					string(o.include) +
					`": must be 'Metadata', 'Object', 'None', or empty`)
			}
		}
		o.fallback = o.fallback || !h.able(o)
		if !o.fallback || !alone {
			o.fallback = o.fallback || o.pretty && !alone && o.media == mediaJSON
			return o, nil
		}
		known = true
	}
	if h.Fallback != nil && (known || alone) {
		plain.fallback = true
		return plain, nil
	}
	return plain, notAcceptable()
}

// able reports whether the source can truthfully be shown in a form.
func (h *Handler) able(o output) bool {
	res := h.Resource()
	if o.shape == table && tableOf(res) == nil {
		return false
	}
	if res.Known() && o.media == mediaJSON && o.shape != metadataOnly {
		return h.Status().NewerField == "" && res.New() != nil
	}
	return true
}

func notAcceptable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join([]string{mediaJSON, mediaYAML, mediaProtobuf},
			", "),
	}}
}
