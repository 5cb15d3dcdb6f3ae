package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// Path is where these Leases are.
const Path = "/apis/coordination.k8s.io/v1/namespaces/" + contract.NodeLeaseNamespace + "/leases"

// Kind is what they are.
var Kind = wire.Kind{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}

// metadataKind is what an answer declares that is a Lease without its spec.
var metadataKind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}

// AcceptMetadata asks for a Lease without its spec. A server that knows no such answers gives all of it.
const AcceptMetadata = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	runtime.ContentTypeProtobuf

// Decode reads a Lease as a request or an answer carries it, perhaps without its spec: see AcceptMetadata.
func Decode(contentType string, body []byte) (*coordinationv1.Lease, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("read a Lease: content type %q: %w", contentType, err)
	}
	l := &coordinationv1.Lease{}
	switch media {
	case runtime.ContentTypeProtobuf:
		var kind wire.Kind
		var raw []byte
		if kind, raw, err = wire.SplitEnvelope(body); err == nil {
			switch kind {
			case Kind:
				err = l.Unmarshal(raw)
			case metadataKind:
				var m metav1.PartialObjectMetadata
				err = m.Unmarshal(raw)
				l.ObjectMeta = m.ObjectMeta
			default:
				err = fmt.Errorf("it is a %s", kind)
			}
		}
	case runtime.ContentTypeJSON:
		if err = json.Unmarshal(body, l); err == nil && (l.Kind != Kind.Kind || l.APIVersion != Kind.APIVersion) {
			err = fmt.Errorf("it is a %s %s", l.APIVersion, l.Kind)
		}
	default:
		err = fmt.Errorf("content type %q", contentType)
	}
	if err == nil && l.Name == "" {
		err = errors.New("it has no name")
	}
	if err != nil {
		return nil, fmt.Errorf("read a Lease: %w", err)
	}
	return l, nil
}

// Encode writes a Lease in the encoding of a content type, or the first one of an Accept header.
func Encode(l *coordinationv1.Lease, accept string) (contentType string, body []byte, err error) {
	if strings.HasPrefix(accept, runtime.ContentTypeProtobuf) {
		raw, err := l.Marshal()
		if err != nil {
			return "", nil, fmt.Errorf("write a Lease: %w", err)
		}
		return runtime.ContentTypeProtobuf, wire.Envelope(Kind, raw), nil
	}
	out := l.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: Kind.APIVersion, Kind: Kind.Kind}
	if body, err = json.Marshal(out); err != nil {
		return "", nil, fmt.Errorf("write a Lease: %w", err)
	}
	return runtime.ContentTypeJSON, body, nil
}

// RenewTime is when the node was last heard; zero: never.
func RenewTime(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// SetRenewTime sets it.
func SetRenewTime(l *coordinationv1.Lease, t time.Time) {
	renew := metav1.NewMicroTime(t)
	l.Spec.RenewTime = &renew
}

// IsDelegated reports whether somebody speaks for the node.
func IsDelegated(l *coordinationv1.Lease) bool {
	return l.Annotations[contract.DelegateHeartbeat] == contract.Delegated
}

// SetDelegated sets or removes the annotation; in the coordinator a label stands beside it, so that delegated Leases
// alone can be watched.
func SetDelegated(l *coordinationv1.Lease, yes bool) {
	if !yes {
		delete(l.Annotations, contract.DelegateHeartbeat)
		delete(l.Labels, contract.DelegateHeartbeat)
		return
	}
	for _, m := range []*map[string]string{&l.Annotations, &l.Labels} {
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[contract.DelegateHeartbeat] = contract.Delegated
	}
}

// Along is what the hub of the node tells with a heartbeat, see packages digest and roll. "" is nothing.
type Along struct{ Digest, Reads, Anchor string }

// AlongOf is what stands on a Lease.
func AlongOf(l *coordinationv1.Lease) Along {
	return Along{
		Digest: l.Annotations[contract.DigestAnnotation], Reads: l.Annotations[contract.ReadsAnnotation],
		Anchor: l.Annotations[contract.AnchorAnnotation],
	}
}

// All is each by its annotation, also what is nothing.
func (a Along) All() map[string]string {
	return map[string]string{
		contract.DigestAnnotation: a.Digest, contract.ReadsAnnotation: a.Reads, contract.AnchorAnnotation: a.Anchor,
	}
}

// Set puts it on a Lease, and removes what another heartbeat told.
func (a Along) Set(l *coordinationv1.Lease) {
	for name, text := range a.All() {
		if text == "" {
			delete(l.Annotations, name)
		} else {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, name, text)
		}
	}
}

// IsOwn reports whether a request is a heartbeat of a node, or reads what heartbeats are based on.
func IsOwn(header http.Header, asked *request.Request, node string) bool {
	for name := range header {
		if name == "Content-Encoding" || strings.HasPrefix(name, "Impersonate-") {
			return false
		}
	}
	leases := request.Resource{Group: coordinationv1.GroupName, Version: "v1", Name: "leases"}
	if asked.Odd || asked.Upgrade || asked.Resource != leases || asked.Namespace != contract.NodeLeaseNamespace ||
		asked.Subresource != "" {
		return false
	}
	switch asked.Verb {
	case "create":
		return asked.Name == ""
	case "get":
		return asked.Reads() && asked.Name == node && !asked.Query.Has("watch")
	case "update", "patch":
		return asked.Name == node
	}
	return false
}
