package bulletin

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// Place is where the cloud has a text: in one object.
type Place struct {
	Path string // of all objects of its kind in its namespace
	Name string
	Text func(object []byte) (text []byte, err error) // of the object, as JSON; none: it has none
}

// ConfigMap is a Place in contract.KeyNamespace.
func ConfigMap(name, key string) Place {
	return Place{
		Path: "/api/v1/namespaces/" + contract.KeyNamespace + "/configmaps", Name: name,
		Text: func(object []byte) ([]byte, error) {
			var m corev1.ConfigMap
			err := json.Unmarshal(object, &m)
			return []byte(m.Data[key]), err
		},
	}
}
