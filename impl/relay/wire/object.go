package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/labels"
)

// Encoding is the form in which objects are held.
type Encoding uint8

// The two encodings that kube-apiserver serves everywhere: protobuf for built-in types, JSON for custom resources.
const (
	Protobuf Encoding = iota
	JSON
)

func (e Encoding) String() string {
	if e == JSON {
		return "json"
	}
	return "protobuf"
}

// Object is one object as it came, with the few decoded fields that a cache needs. It is immutable.
type Object struct {
	Key       string // "namespace/name", or "name" for a cluster-scoped object
	Namespace string
	Name      string
	UID       string
	Version   uint64 // metadata.resourceVersion
	Labels    Labels
	Raw       []byte // bare protobuf message, or JSON
}

// Labels are the labels of an object as pairs, in the order they came. It implements labels.Labels.
type Labels []string

var _ labels.Labels = Labels(nil)

// Lookup returns the value of a label and whether it is there.
func (l Labels) Lookup(label string) (string, bool) {
	for i := 0; i+1 < len(l); i += 2 {
		if l[i] == label {
			return l[i+1], true
		}
	}
	return "", false
}

// Has tells whether a label is there.
func (l Labels) Has(label string) bool { _, ok := l.Lookup(label); return ok }

// Get returns the value of a label, or "".
func (l Labels) Get(label string) string { v, _ := l.Lookup(label); return v }

// MalformedError is a body or frame from upstream that is not what the Kubernetes API sends.
type MalformedError struct {
	What string // what was being read, e.g. "watch frame"
	Err  error
}

func (e *MalformedError) Error() string { return "malformed " + e.What + ": " + e.Err.Error() }
func (e *MalformedError) Unwrap() error { return e.Err }

func malformed(what string, err error) error { return &MalformedError{What: what, Err: err} }

var (
	errNoName    = errors.New("object has no metadata.name")
	errTruncated = errors.New("truncated")
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

// ParseObject decodes what a cache needs of one object. raw must not change afterwards.
// The error is a *MalformedError.
func ParseObject(enc Encoding, raw []byte) (*Object, error) {
	o := &Object{Raw: raw}
	var err error
	if enc == JSON {
		err = o.parseJSON()
	} else {
		err = o.parseProtobuf()
	}
	if err == nil && o.Name == "" {
		err = errNoName
	}
	if err != nil {
		return nil, malformed("object", err)
	}
	o.Key = o.Name
	if o.Namespace != "" {
		o.Key = o.Namespace + "/" + o.Name
	}
	return o, nil
}

// ParseBody takes the body of an answer apart that is one object.
func ParseBody(enc Encoding, body []byte) (Kind, *Object, error) {
	raw := body
	var kind Kind
	var err error
	if enc == JSON {
		var m struct{ APIVersion, Kind string }
		if err = json.Unmarshal(body, &m); err != nil {
			return kind, nil, malformed("object", err)
		}
		kind = Kind(m)
	} else if kind, raw, err = SplitEnvelope(body); err != nil {
		return kind, nil, err
	}
	o, err := ParseObject(enc, raw)
	return kind, o, err
}

func (o *Object) parseProtobuf() error {
	meta, err := field(o.Raw, fieldMetadata)
	if err != nil {
		return err
	}
	if meta == nil {
		return errNoName
	}
	return eachField(meta, func(num protowire.Number, v []byte) error {
		switch num {
		case metaName:
			o.Name = alias(v)
		case metaNamespace:
			o.Namespace = alias(v)
		case metaUID:
			o.UID = alias(v)
		case metaVersion:
			return o.setVersion(alias(v))
		case metaLabels:
			k, val, err := mapEntry(v)
			o.Labels = append(o.Labels, k, val)
			return err
		}
		return nil
	})
}

func (o *Object) setVersion(s string) (err error) {
	o.Version, err = ParseVersion(s)
	return err
}

// ParseVersion reads a resourceVersion as the number it is (KEP-5504). "" is 0.
func ParseVersion(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number (KEP-5504)", s)
	}
	return v, nil
}

// FormatVersion is the inverse of ParseVersion for versions above 0.
func FormatVersion(v uint64) string { return strconv.FormatUint(v, 10) }

// alias returns b as a string that shares its bytes: objects are immutable, and a cache of thousands of
// objects would otherwise hold each name and label twice.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func mapEntry(b []byte) (key, value string, err error) {
	err = eachField(b, func(num protowire.Number, v []byte) error {
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

// eachField calls f for every field of a message; v is the content of a length-delimited field, nil for others.
func eachField(msg []byte, f func(num protowire.Number, v []byte) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return protowire.ParseError(n)
		}
		msg = msg[n:]
		var v []byte
		if typ == protowire.BytesType {
			if v, n = protowire.ConsumeBytes(msg); v == nil && n >= 0 {
				v = []byte{}
			}
		} else {
			n = protowire.ConsumeFieldValue(num, typ, msg)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		msg = msg[n:]
		if err := f(num, v); err != nil {
			return err
		}
	}
	return nil
}

var errFound = errors.New("found")

// field returns the first length-delimited field num of a message, nil if there is none.
func field(msg []byte, num protowire.Number) ([]byte, error) {
	var found []byte
	err := eachField(msg, func(n protowire.Number, v []byte) error {
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

// WithVersion returns a copy of an object whose metadata.resourceVersion is v.
func (o *Object) WithVersion(enc Encoding, v uint64) (*Object, error) {
	if enc == JSON {
		return o.withVersionJSON(v)
	}
	out := make([]byte, 0, len(o.Raw)+8)
	rest := o.Raw
	for len(rest) > 0 {
		num, typ, tag := protowire.ConsumeTag(rest)
		n := protowire.ConsumeFieldValue(num, typ, rest[max(tag, 0):])
		if tag < 0 || n < 0 {
			return nil, malformed("object", errTruncated)
		}
		if num != fieldMetadata {
			out = append(out, rest[:tag+n]...)
			rest = rest[tag+n:]
			continue
		}
		meta, _ := protowire.ConsumeBytes(rest[tag:])
		patched := make([]byte, 0, len(meta)+8)
		for len(meta) > 0 {
			fnum, ftyp, ftag := protowire.ConsumeTag(meta)
			fn := protowire.ConsumeFieldValue(fnum, ftyp, meta[max(ftag, 0):])
			if ftag < 0 || fn < 0 {
				return nil, malformed("object", errTruncated)
			}
			if fnum == metaVersion {
				patched = protowire.AppendTag(patched, metaVersion, protowire.BytesType)
				patched = protowire.AppendString(patched, FormatVersion(v))
			} else {
				patched = append(patched, meta[:ftag+fn]...)
			}
			meta = meta[ftag+fn:]
		}
		out = protowire.AppendTag(out, fieldMetadata, protowire.BytesType)
		out = protowire.AppendBytes(out, patched)
		rest = rest[tag+n:]
	}
	return ParseObject(enc, out)
}

// Metadata returns the PartialObjectMetadata of an object, as JSON or as a bare protobuf message.
func (o *Object) Metadata(enc Encoding) ([]byte, error) {
	if enc == JSON {
		return MetadataJSON(o.Raw)
	}
	return MetadataOnly(o.Raw)
}

// MetadataOnly returns the bare PartialObjectMetadata message of a bare protobuf object: in both, metadata is field 1.
func MetadataOnly(raw []byte) ([]byte, error) {
	for rest := raw; len(rest) > 0; {
		num, typ, tag := protowire.ConsumeTag(rest)
		n := protowire.ConsumeFieldValue(num, typ, rest[max(tag, 0):])
		if tag < 0 || n < 0 {
			break
		}
		if num == fieldMetadata {
			return rest[: tag+n : tag+n], nil
		}
		rest = rest[tag+n:]
	}
	return nil, malformed("object", errNoName)
}
