package offline

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

// statusField is the number of the status in the protobuf messages of pods and nodes.
const statusField = 3

// written shows an object as its node wrote it while the cloud was away: with the queued status, under the version that the
// cloud gave last.
func (s *Server) written(r store.Resource, f store.Form, o *wire.Object) *wire.Object {
	kind := queue.PodStatus
	switch {
	case r.Group != "" || r.Version != "v1" || f >= store.ProtobufMetadata:
		return o
	case r.Name == "nodes":
		kind = queue.NodeStatus
	case r.Name != "pods":
		return o
	}
	e, ok := s.store.Queue().Lookup(queue.Target{Kind: kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID})
	if !ok && kind == queue.NodeStatus {
		e, ok = s.store.Queue().Lookup(queue.Target{Kind: kind, Name: o.Name})
	}
	if !ok {
		return o
	}
	patched, err := withStatus(kind, f, o, e.Ours)
	if err != nil {
		s.logger.Error("a queued status cannot be shown: the cloud's is", "of", o.Key, "err", err)
		return o
	}
	return patched
}

// withStatus gives an object with another status, which is JSON. All else stays as it is, byte by byte if it is protobuf.
func withStatus(kind queue.Kind, f store.Form, o *wire.Object, status []byte) (*wire.Object, error) {
	if f == store.JSON {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(o.Raw, &all); err != nil {
			return nil, err
		}
		all["status"] = status
		raw, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		return wire.ParseObject(wire.JSON, raw)
	}
	var m interface{ Marshal() ([]byte, error) } = &corev1.PodStatus{}
	if kind == queue.NodeStatus {
		m = &corev1.NodeStatus{}
	}
	if err := json.Unmarshal(status, m); err != nil {
		return nil, err
	}
	encoded, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 0, len(o.Raw)+len(encoded))
	for rest := o.Raw; len(rest) > 0; {
		num, typ, tag := protowire.ConsumeTag(rest)
		n := protowire.ConsumeFieldValue(num, typ, rest[max(tag, 0):])
		if tag < 0 || n < 0 {
			return nil, fmt.Errorf("the kept object is malformed")
		}
		if num != statusField {
			raw = append(raw, rest[:tag+n]...)
		}
		rest = rest[tag+n:]
	}
	raw = protowire.AppendTag(raw, statusField, protowire.BytesType)
	return wire.ParseObject(wire.Protobuf, protowire.AppendBytes(raw, encoded))
}
