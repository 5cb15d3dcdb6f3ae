package hop

import (
	"io"
	"net"
	"net/url"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Form is how much of each object is asked for.
type Form string

// The forms.
const (
	Whole        Form = ""
	Metadata     Form = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	MetadataList Form = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// MetadataKind is what objects of form Metadata declare.
var MetadataKind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}

const (
	acceptProtobuf = "application/vnd.kubernetes.protobuf"
	acceptJSON     = "application/json"
)

// Question is a list or watch.
type Question struct {
	Of        Form
	Namespace string // "": all
	Query     url.Values
	History   *relay.History // that a relay has to be in; nil: any
	Past      bool           // rest.PastHeader
	small     bool           // the answer is, and goes by Upstream.Ask
	Aside     bool           // it is left early, and goes by Upstream.Aside
	Delta     bool           // a watch in the delta form of package wire will do
	Since     uint64         // of such a list: what is as it was then need not come. 0: all comes
}

// Answer is one that has begun.
type Answer struct {
	Body       io.ReadCloser // decompressed and counted
	Compressed bool
	Delta      bool          // it is a watch in the delta form of package wire
	History    relay.History // of the answer of a relay
	Conn       net.Conn      // that it came over; nil: not known
	Arrived    func() int64  // bytes of the body that came so far, as they travel; safe for concurrent use
}

// Check looks at the history that a relay says it is in, and at how long ago it had a sign of the cloud, below 0 if it
// does not say that. Its error is the answer, whatever else is answered. It is not called if the upstream is no relay.
type Check func(theirs relay.History, age time.Duration) error
