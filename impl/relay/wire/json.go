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

// withVersion returns a JSON object whose metadata.resourceVersion is v.
func withVersion(object []byte, v uint64) ([]byte, error) {
	var obj, meta map[string]json.RawMessage
	if err := json.Unmarshal(object, &obj); err != nil {
		return nil, malformed("object", err)
	}
	if err := json.Unmarshal(obj["metadata"], &meta); err != nil {
		return nil, malformed("object metadata", err)
	}
	meta["resourceVersion"], _ = json.Marshal(FormatVersion(v))
	var err error
	if obj["metadata"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// metadataJSON returns the JSON PartialObjectMetadata of a JSON object.
func metadataJSON(raw []byte) ([]byte, error) {
	var m struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, malformed("object", err)
	}
	return fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}`, m.Metadata),
		nil
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
