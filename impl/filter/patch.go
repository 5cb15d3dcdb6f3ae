package filter

import (
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errMalformed = errors.New("malformed message")

func appendString(out []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(out, num, protowire.BytesType), s)
}

// object is a JSON object of which all fields stay that are not replaced.
type object map[string]json.RawMessage

// set replaces a field by what always has a JSON form.
func (o object) set(name string, value any) {
	if b, err := json.Marshal(value); err == nil {
		o[name] = b
	}
}

// patch changes the object in one field of a JSON object.
func patch(raw []byte, name string, f func(object) error) ([]byte, error) {
	var outer, inner object
	if err := json.Unmarshal(raw, &outer); err != nil {
		return raw, err
	}
	if err := json.Unmarshal(outer[name], &inner); err != nil {
		return raw, err
	}
	if err := f(inner); err != nil {
		return raw, err
	}
	outer.set(name, inner)
	return json.Marshal(outer)
}
