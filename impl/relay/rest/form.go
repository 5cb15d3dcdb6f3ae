package rest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	mediaYAML     = "application/yaml"

	watchParameter = ";stream=watch"
)

// shape is what an answer is made of.
type shape uint8

const (
	whole        shape = iota // the objects
	metadataOnly              // PartialObjectMetadata
	table                     // Table
)

// output is the negotiated form of an answer.
type output struct {
	media    string // mediaJSON or mediaProtobuf, of what differences make, too
	shape    shape
	beta     bool // meta.k8s.io/v1beta1 instead of v1
	fallback bool // only Handler.Fallback can answer
	gzip     bool // the client takes gzip
	pretty   bool // indented, which only Handler.Fallback does
	include  metav1.IncludeObjectPolicy
	delta    bool   // a watch, in the delta form of package wire
	since    uint64 // up to this version the reader of such a list has all; 0: it has nothing
}

// transform reads the as, g and v parameters; false if this clause cannot be served.
func (o *output) transform(params map[string]string, single bool) bool {
	as := params["as"]
	if as == "" {
		return true
	}
	if params["g"] != metav1.GroupName || params["v"] != "v1" && params["v"] != "v1beta1" {
		return false
	}
	o.beta = params["v"] == "v1beta1"
	switch as {
	case "Table":
		o.shape = table
		return o.media == mediaJSON
	case "PartialObjectMetadata":
		o.shape = metadataOnly
		return single
	case "PartialObjectMetadataList":
		o.shape = metadataOnly
		return !single
	}
	return false
}

// mediaOf is the encoding that a resource is held in.
func mediaOf(res relay.Resource) string {
	if res.Encoding() == wire.Protobuf {
		return mediaProtobuf
	}
	return mediaJSON
}

// stream is the media type of a watch.
func (o *output) stream() string {
	switch {
	case o.delta:
		return wire.DeltaMedia + watchParameter
	case o.media == mediaJSON:
		return o.media
	}
	return o.media + watchParameter
}
