package wire

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Kind is the apiVersion and kind that a body or frame declares.
type Kind struct{ APIVersion, Kind string }

func (k Kind) String() string { return k.APIVersion + " " + k.Kind }

var protobufMagic = []byte{'k', '8', 's', 0}

// Fields of runtime.Unknown and runtime.TypeMeta.
const (
	unknownTypeMeta = 1
	unknownRaw      = 2
	typeAPIVersion  = 1
	typeKind        = 2
)

// unknownTail is what kube-apiserver writes behind the raw bytes: empty contentEncoding and contentType.
var unknownTail = []byte{0x1a, 0, 0x22, 0}

// AppendEnvelope appends the start of a protobuf body: the magic and a runtime.Unknown up to its raw bytes,
// of which n follow, and then EnvelopeTail.
func AppendEnvelope(dst []byte, k Kind, n int) []byte {
	dst = append(dst, protobufMagic...)
	dst = protowire.AppendTag(dst, unknownTypeMeta, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(typeMetaSize(k)))
	dst = appendString(dst, typeAPIVersion, k.APIVersion)
	dst = appendString(dst, typeKind, k.Kind)
	dst = protowire.AppendTag(dst, unknownRaw, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(n))
}

// EnvelopeTail ends a body that AppendEnvelope began.
func EnvelopeTail() []byte { return unknownTail }

// Envelope is the whole protobuf body of an object.
func Envelope(k Kind, raw []byte) []byte {
	dst := AppendEnvelope(make([]byte, 0, len(raw)+64), k, len(raw))
	return append(append(dst, raw...), unknownTail...)
}

func typeMetaSize(k Kind) int {
	return 2 + protowire.SizeBytes(len(k.APIVersion)) + protowire.SizeBytes(len(k.Kind))
}

func envelopeSize(k Kind, n int) int {
	return len(protobufMagic) + 1 + protowire.SizeBytes(typeMetaSize(k)) + 1 + protowire.SizeBytes(n) + len(unknownTail)
}

// SplitEnvelope takes a protobuf body apart into what it declares and its bare message.
func SplitEnvelope(body []byte) (k Kind, raw []byte, err error) {
	if len(body) < len(protobufMagic) || string(body[:len(protobufMagic)]) != string(protobufMagic) {
		return k, nil, malformed("protobuf body", errors.New("it does not begin with k8s\\0"))
	}
	err = EachField(body[len(protobufMagic):], func(num protowire.Number, v, _ []byte) error {
		switch num {
		case unknownTypeMeta:
			return k.parse(v)
		case unknownRaw:
			raw = v
		}
		return nil
	})
	if err != nil {
		return k, nil, malformed("protobuf body", err)
	}
	return k, raw, nil
}

func (k *Kind) parse(typeMeta []byte) error {
	return EachField(typeMeta, func(num protowire.Number, v, _ []byte) error {
		switch num {
		case typeAPIVersion:
			k.APIVersion = string(v)
		case typeKind:
			k.Kind = string(v)
		}
		return nil
	})
}
