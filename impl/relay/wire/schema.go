package wire

import (
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Schema is the set of protobuf field numbers that a compiled Go type knows, read from its protobuf struct tags.
// It answers whether a message has fields newer than the type: decoding would drop those without a word, and a client
// that writes back what it read would then erase them in the cloud.
type Schema struct {
	fields map[protowire.Number]*Schema // nil value: a scalar, or a type without tags that decodes itself
}

// NewSchema reads the schema of a struct type such as discoveryv1.EndpointSlice.
func NewSchema(t reflect.Type) *Schema { return newSchema(t, map[reflect.Type]*Schema{}) }

func newSchema(t reflect.Type, seen map[reflect.Type]*Schema) *Schema {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if s, ok := seen[t]; ok {
		return s
	}
	s := &Schema{fields: map[protowire.Number]*Schema{}}
	seen[t] = s
	for i := range t.NumField() {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		num, err := strconv.Atoi(parts[1])
		if err != nil {
			continue
		}
		s.fields[protowire.Number(num)] = newFieldSchema(f.Type, seen)
	}
	if len(s.fields) == 0 { // metav1.Time, resource.Quantity: they decode themselves
		seen[t] = nil
		return nil
	}
	return s
}

func newFieldSchema(t reflect.Type, seen map[reflect.Type]*Schema) *Schema {
	if t.Kind() == reflect.Map {
		entry := map[protowire.Number]*Schema{1: nil, 2: newFieldSchema(t.Elem(), seen)}
		return &Schema{fields: entry}
	}
	return newSchema(t, seen)
}

// Unknown returns the path of field numbers of the first field that the type does not know, "" if it knows all.
func (s *Schema) Unknown(raw []byte) string {
	for len(raw) > 0 {
		num, typ, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return "?"
		}
		raw = raw[n:]
		sub, known := s.fields[num]
		if !known {
			return strconv.Itoa(int(num))
		}
		if n = protowire.ConsumeFieldValue(num, typ, raw); n < 0 {
			return "?"
		}
		if sub != nil && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(raw)
			if path := sub.Unknown(v); path != "" {
				return strconv.Itoa(int(num)) + "." + path
			}
		}
		raw = raw[n:]
	}
	return ""
}
