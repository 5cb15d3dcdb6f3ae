package wire

import (
	"errors"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of protobuf fields, from generated.proto of k8s.io/apimachinery/pkg/apis/meta/v1.
const (
	fieldMetadata = 1 // of every object and every list
	fieldItems    = 2 // of every list

	metaName        = 1
	metaNamespace   = 3
	metaUID         = 5
	metaVersion     = 6
	metaLabels      = 11
	metaAnnotations = 12

	listVersion   = 2
	listContinue  = 3
	listRemaining = 4
)

// alias returns b as a string that shares its bytes: objects are immutable, and a cache of thousands of
// objects would otherwise hold each name and label twice.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func mapEntry(b []byte) (key, value string, err error) {
	err = EachField(b, func(num protowire.Number, v, _ []byte) error {
		switch num {
		case 1:
			key = alias(v)
		case 2:
			value = alias(v)
		}
		return nil
	})
	return key, value, err
}

// EachField calls f for every field of a message; v is the content of a length-delimited field, nil for others; whole
// is the field as it stands in the message.
func EachField(msg []byte, f func(num protowire.Number, v, whole []byte) error) error {
	for len(msg) > 0 {
		num, typ, tag := protowire.ConsumeTag(msg)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		var v []byte
		var n int
		if typ == protowire.BytesType {
			if v, n = protowire.ConsumeBytes(msg[tag:]); v == nil && n >= 0 {
				v = []byte{}
			}
		} else {
			n = protowire.ConsumeFieldValue(num, typ, msg[tag:])
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(num, v, msg[:tag+n]); err != nil {
			return err
		}
		msg = msg[tag+n:]
	}
	return nil
}

// Rebuild makes a message of what f appends for each field of another; f is told of a field as by EachField.
func Rebuild(msg []byte, f func(out []byte, num protowire.Number, v, whole []byte) ([]byte, error)) ([]byte, error) {
	out := make([]byte, 0, len(msg)+32)
	err := EachField(msg, func(num protowire.Number, v, whole []byte) (err error) {
		out, err = f(out, num, v, whole)
		return err
	})
	return out, err
}

// Replace makes a message with another content of one field, which is a message.
func Replace(msg []byte, field protowire.Number, f func([]byte) ([]byte, error)) ([]byte, error) {
	return Rebuild(msg, func(out []byte, num protowire.Number, v, whole []byte) ([]byte, error) {
		if num != field || v == nil {
			return append(out, whole...), nil
		}
		v, err := f(v)
		return protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), v), err
	})
}

// appendString appends a field.
func appendString(dst []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, num, protowire.BytesType), s)
}

var errFound = errors.New("found")

// field returns the first length-delimited field num of a message, nil if there is none.
func field(msg []byte, num protowire.Number) ([]byte, error) {
	var found []byte
	err := EachField(msg, func(n protowire.Number, v, _ []byte) error {
		if n == num && v != nil {
			found = v
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}

// Path returns the field at a path of field numbers in a bare message: a string for length-delimited
// fields, "true" or "" for a varint. A missing field is "".
func Path(raw []byte, path ...int) string {
	for i, num := range path {
		last := i == len(path)-1
		var next []byte
		var text string
		rest := raw
		for len(rest) > 0 {
			n, typ, l := protowire.ConsumeTag(rest)
			if l < 0 {
				return ""
			}
			rest = rest[l:]
			switch {
			case int(n) == num && typ == protowire.BytesType:
				next, l = protowire.ConsumeBytes(rest)
			case int(n) == num && typ == protowire.VarintType && last:
				var v uint64
				if v, l = protowire.ConsumeVarint(rest); v != 0 {
					text = "true"
				}
			default:
				l = protowire.ConsumeFieldValue(n, typ, rest)
			}
			if l < 0 {
				return ""
			}
			rest = rest[l:]
		}
		if last {
			if next != nil {
				return string(next)
			}
			return text
		}
		raw = next
	}
	return ""
}
