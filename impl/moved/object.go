package moved

import (
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Form is what an object of a relay is now, under its own version: the object itself if nothing of it is corrected. One
// that cannot be read passes as it is.
type Form func(o *wire.Object) *wire.Object

// inner is the field of EndpointSlice that holds endpoints, and of Endpoints that holds subsets, by number.
const inner = protowire.Number(2)

// serviceLabel of a slice names its Service.
const serviceLabel = "kubernetes.io/service-name"

// SliceForm is the Form of EndpointSlices. publishes reports whether a Service publishes addresses that are not ready.
// Fields that this build does not know stay, but for those of endpoints that are corrected.
func (s *Set) SliceForm(enc wire.Encoding, publishes func(namespace, service string) bool) Form {
	return s.form(enc, func(o *wire.Object) ([]byte, error) {
		var in discoveryv1.EndpointSlice
		if err := decode(enc, o.Raw, &in); err != nil {
			return nil, err
		}
		all := publishes(o.Namespace, o.Labels.Get(serviceLabel)) || slices.ContainsFunc(in.Endpoints, published)
		if _, changed := s.Slice(&in, all); !changed {
			return nil, nil
		}
		if enc == wire.JSON {
			return patched(o.Raw, "endpoints", func(i int, raw json.RawMessage) (any, bool) {
				e, keep, changed := s.endpoint(&in, i, all)
				if !changed {
					return raw, true
				}
				return e, keep
			})
		}
		i := -1
		return wire.Rebuild(o.Raw, func(out []byte, num protowire.Number, _, whole []byte) ([]byte, error) {
			if num != inner {
				return append(out, whole...), nil
			}
			i++
			e, keep, changed := s.endpoint(&in, i, all)
			if !changed {
				return append(out, whole...), nil
			}
			if !keep {
				return out, nil
			}
			return appendMessage(out, inner, &e)
		})
	})
}

// EndpointsForm is the Form of Endpoints.
func (s *Set) EndpointsForm(enc wire.Encoding, publishes func(namespace, service string) bool) Form {
	return s.form(enc, func(o *wire.Object) ([]byte, error) {
		var in corev1.Endpoints
		if err := decode(enc, o.Raw, &in); err != nil {
			return nil, err
		}
		with, changed := s.Endpoints(&in, publishes(o.Namespace, o.Name))
		if !changed {
			return nil, nil
		}
		if enc == wire.JSON {
			return replaced(o.Raw, "subsets", with.Subsets)
		}
		out, err := wire.Rebuild(o.Raw, func(out []byte, num protowire.Number, _, whole []byte) ([]byte, error) {
			if num != inner {
				out = append(out, whole...)
			}
			return out, nil
		})
		for i := range with.Subsets {
			if err == nil {
				out, err = appendMessage(out, inner, &with.Subsets[i])
			}
		}
		return out, err
	})
}

// form is a Form of what makes other bytes of an object, nil if they are the same.
func (s *Set) form(enc wire.Encoding, make func(o *wire.Object) ([]byte, error)) Form {
	return func(o *wire.Object) *wire.Object {
		if s.idle {
			return o
		}
		raw, err := make(o)
		if err != nil || raw == nil {
			return o
		}
		if with, err := wire.ParseObject(enc, raw); err == nil {
			return with
		}
		return o
	}
}

func decode(enc wire.Encoding, raw []byte, into interface{ Unmarshal([]byte) error }) error {
	if enc == wire.JSON {
		return json.Unmarshal(raw, into)
	}
	return into.Unmarshal(raw)
}

func appendMessage(out []byte, field protowire.Number, m interface{ Marshal() ([]byte, error) }) ([]byte, error) {
	b, err := m.Marshal()
	return protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), b), err
}

// patched is a JSON object with other elements of a list; f tells what becomes of each, and whether it stays.
func patched(raw []byte, field string, f func(i int, element json.RawMessage) (any, bool)) ([]byte, error) {
	var head map[string]json.RawMessage
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(head[field], &elements); err != nil {
		return nil, err
	}
	left := []any{}
	for i, e := range elements {
		if with, keep := f(i, e); keep {
			left = append(left, with)
		}
	}
	return replaced(raw, field, left)
}

// replaced is a JSON object with another value of a field.
func replaced(raw []byte, field string, value any) ([]byte, error) {
	var head map[string]json.RawMessage
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	b, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	head[field] = b
	return json.Marshal(head)
}
