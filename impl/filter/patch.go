package filter

import (
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one of a protobuf message.
type field struct {
	num   protowire.Number
	value []byte // of a length-delimited one
	all   []byte // with its tag
}

var errMalformed = errors.New("malformed message")

// each calls f for the fields of a message.
func each(msg []byte, f func(field) error) error {
	for len(msg) > 0 {
		num, typ, tag := protowire.ConsumeTag(msg)
		if tag < 0 {
			return errMalformed
		}
		n := protowire.ConsumeFieldValue(num, typ, msg[tag:])
		if n < 0 {
			return errMalformed
		}
		one := field{num: num, all: msg[:tag+n]}
		if typ == protowire.BytesType {
			one.value, _ = protowire.ConsumeBytes(msg[tag:])
		}
		if err := f(one); err != nil {
			return err
		}
		msg = msg[tag+n:]
	}
	return nil
}

// rebuild makes a message of what f appends for each field.
func rebuild(msg []byte, f func(out []byte, one field) ([]byte, error)) ([]byte, error) {
	out := make([]byte, 0, len(msg)+32)
	err := each(msg, func(one field) (err error) {
		out, err = f(out, one)
		return err
	})
	return out, err
}

// replace makes a message with another content of one field, which is a message.
func replace(msg []byte, num protowire.Number, f func([]byte) ([]byte, error)) ([]byte, error) {
	return rebuild(msg, func(out []byte, one field) ([]byte, error) {
		if one.num != num || one.value == nil {
			return append(out, one.all...), nil
		}
		value, err := f(one.value)
		return protowire.AppendBytes(protowire.AppendTag(out, num, protowire.BytesType), value), err
	})
}

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
