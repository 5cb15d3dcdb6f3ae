package wire

import (
	"cmp"
	"encoding/json"

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

// Has reports whether a label is there.
func (l Labels) Has(label string) bool { _, ok := l.Lookup(label); return ok }

// Get returns the value of a label, or "".
func (l Labels) Get(label string) string { v, _ := l.Lookup(label); return v }

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
	return EachField(meta, func(num protowire.Number, v, _ []byte) error {
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

func (o *Object) parseJSON() error {
	var m jsonMeta
	if err := json.Unmarshal(o.Raw, &m); err != nil {
		return err
	}
	o.Name, o.Namespace, o.UID = m.Metadata.Name, m.Metadata.Namespace, m.Metadata.UID
	for k, v := range m.Metadata.Labels {
		o.Labels = append(o.Labels, k, v)
	}
	return o.setVersion(m.Metadata.ResourceVersion)
}

func (o *Object) setVersion(s string) (err error) {
	o.Version, err = ParseVersion(s)
	return err
}

// WithVersion returns a copy of an object whose metadata.resourceVersion is v.
func (o *Object) WithVersion(enc Encoding, v uint64) (*Object, error) {
	if enc == JSON {
		raw, err := withVersion(o.Raw, v)
		if err != nil {
			return nil, err
		}
		return ParseObject(JSON, raw)
	}
	out, err := Replace(o.Raw, fieldMetadata, func(meta []byte) ([]byte, error) {
		return Rebuild(meta, func(out []byte, num protowire.Number, _, whole []byte) ([]byte, error) {
			if num == metaVersion {
				return appendString(out, metaVersion, FormatVersion(v)), nil
			}
			return append(out, whole...), nil
		})
	})
	if err != nil {
		return nil, malformed("object", err)
	}
	return ParseObject(enc, out)
}

// Metadata returns the PartialObjectMetadata of an object, as JSON or as a bare protobuf message.
func (o *Object) Metadata(enc Encoding) ([]byte, error) {
	if enc == JSON {
		return metadataJSON(o.Raw)
	}
	var found []byte
	err := EachField(o.Raw, func(num protowire.Number, _, whole []byte) error {
		if num != fieldMetadata { // of both messages
			return nil
		}
		found = whole[:len(whole):len(whole)]
		return errFound
	})
	if found == nil {
		return nil, malformed("object", cmp.Or(err, errNoName))
	}
	return found, nil
}
