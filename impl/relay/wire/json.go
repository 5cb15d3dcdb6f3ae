package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonMeta is the part of a JSON object that a cache needs.
type jsonMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
}

func (o *Object) parseJSON() error {
	var m jsonMeta
	if err := json.Unmarshal(o.Raw, &m); err != nil {
		return err
	}
	return o.fromJSONMeta(&m)
}

func (o *Object) fromJSONMeta(m *jsonMeta) error {
	o.Name, o.Namespace, o.UID = m.Metadata.Name, m.Metadata.Namespace, m.Metadata.UID
	for k, v := range m.Metadata.Labels {
		o.Labels = append(o.Labels, k, v)
	}
	return o.setVersion(m.Metadata.ResourceVersion)
}

func (o *Object) withVersionJSON(v uint64) (*Object, error) {
	var obj map[string]json.RawMessage
	if err := json.Unmarshal(o.Raw, &obj); err != nil {
		return nil, malformed("object", err)
	}
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(obj["metadata"], &meta); err != nil {
		return nil, malformed("object metadata", err)
	}
	meta["resourceVersion"], _ = json.Marshal(FormatVersion(v))
	var err error
	if obj["metadata"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return ParseObject(JSON, raw)
}

// MetadataJSON returns the JSON PartialObjectMetadata of a JSON object.
func MetadataJSON(raw []byte) ([]byte, error) {
	var m struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, malformed("object", err)
	}
	return fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}`, m.Metadata), nil
}

// withKind returns a JSON object with kind and apiVersion first: typed list items come without them.
func withKind(raw []byte, apiVersion, kind string) []byte {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return raw
	}
	rest := bytes.TrimLeft(trimmed[1:], " \t\r\n")
	sep := ","
	if len(rest) > 0 && rest[0] == '}' {
		sep = ""
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q%s%s`, kind, apiVersion, sep, rest)
}
