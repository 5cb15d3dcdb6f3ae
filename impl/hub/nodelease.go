package hub

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

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

const (
	nodeLeasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + contract.NodeLeaseNamespace + "/leases"
	mediaJSON      = "application/json"
	maxLease       = 64 << 10
)

var leaseKind = wire.Kind{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}

// decodeLease reads a Lease as a request or an answer carries it.
func decodeLease(contentType string, body []byte) (*coordinationv1.Lease, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("read a Lease: content type %q: %w", contentType, err)
	}
	l := &coordinationv1.Lease{}
	switch media {
	case mediaProtobuf:
		var kind wire.Kind
		var raw []byte
		if kind, raw, err = wire.SplitEnvelope(body); err == nil && kind != leaseKind {
			err = fmt.Errorf("it is a %s", kind)
		}
		if err == nil {
			err = l.Unmarshal(raw)
		}
	case mediaJSON:
		if err = json.Unmarshal(body, l); err == nil && (l.Kind != leaseKind.Kind || l.APIVersion != leaseKind.APIVersion) {
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

// encodeLease writes a Lease in the encoding of a content type, or the first one of an Accept header.
func encodeLease(l *coordinationv1.Lease, accept string) (contentType string, body []byte, err error) {
	if strings.HasPrefix(accept, mediaProtobuf) {
		raw, err := l.Marshal()
		if err != nil {
			return "", nil, fmt.Errorf("write a Lease: %w", err)
		}
		return mediaProtobuf, append(append(wire.AppendEnvelope(nil, leaseKind, len(raw)), raw...), wire.EnvelopeTail()...), nil
	}
	out := l.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: leaseKind.APIVersion, Kind: leaseKind.Kind}
	if body, err = json.Marshal(out); err != nil {
		return "", nil, fmt.Errorf("write a Lease: %w", err)
	}
	return mediaJSON, body, nil
}

// beatOf is what decisions need of a Lease.
func beatOf(l *coordinationv1.Lease) heartbeat.Lease {
	return heartbeat.Lease{Version: l.ResourceVersion, Renew: renewTime(l), Delegated: isDelegated(l)}
}

func renewTime(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

func setRenewTime(l *coordinationv1.Lease, t time.Time) {
	renew := metav1.NewMicroTime(t)
	l.Spec.RenewTime = &renew
}

func isDelegated(l *coordinationv1.Lease) bool {
	return l.Annotations[contract.DelegateHeartbeat] == contract.Delegated
}

// setDelegated sets or removes the annotation; in the coordinator a label stands beside it, so that delegated Leases alone can be watched.
func setDelegated(l *coordinationv1.Lease, yes bool) {
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

// ownLease tells whether a request is a heartbeat of a node, or reads what heartbeats are based on.
func ownLease(header http.Header, asked *request.Request, node string) bool {
	for name := range header {
		if name == "Content-Encoding" || strings.HasPrefix(name, "Impersonate-") {
			return false
		}
	}
	leases := request.Resource{Group: coordinationv1.GroupName, Version: "v1", Name: "leases"}
	if asked.Odd || asked.Upgrade || asked.Resource != leases || asked.Namespace != contract.NodeLeaseNamespace || asked.Subresource != "" {
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
