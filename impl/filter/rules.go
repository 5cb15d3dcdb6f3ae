package filter

import (
	"bytes"
	"encoding/json"
	"net"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// rule is what a filter makes of one object: the same bytes, others, or shown false. It fails only for what is no such
// object.
type rule interface {
	apply(v *view, enc wire.Encoding, o *wire.Object) (raw []byte, shown bool, err error)
}

// Numbers of protobuf fields, from generated.proto of k8s.io/api.
const (
	fieldMeta       = 1
	metaAnnotations = 12
	metaVersion     = 6
	serviceSpec     = 2
	specPorts       = 1
	specClusterIP   = 3
	specType        = 4
	specClusterIPs  = 18
	portName        = 1
	portPort        = 3
	sliceEndpoints  = 2
	endpointNode    = 6
)

// serviceHead is what is read of a Service.
type serviceHead struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Type string `json:"type"`
	} `json:"spec"`
}

func headOf(enc wire.Encoding, o *wire.Object) (h serviceHead, err error) {
	if enc == wire.JSON {
		return h, json.Unmarshal(o.Raw, &h)
	}
	h.Metadata.Annotations = map[string]string{}
	h.Spec.Type = wire.Path(o.Raw, serviceSpec, specType)
	err = wire.EachField(o.Raw, func(num protowire.Number, v, _ []byte) error {
		if num != fieldMeta {
			return nil
		}
		return wire.EachField(v, func(num protowire.Number, v, _ []byte) error {
			if num == metaAnnotations {
				h.Metadata.Annotations[wire.Path(v, 1)] = wire.Path(v, 2)
			}
			return nil
		})
	})
	return h, err
}

// discard hides Services that are of no use at the edge.
type discard struct{}

func (discard) apply(_ *view, enc wire.Encoding, o *wire.Object) ([]byte, bool, error) {
	h, err := headOf(enc, o)
	return o.Raw, err != nil || h.Spec.Type != "LoadBalancer" || h.Metadata.Annotations[contract.DiscardService] != "true",
		err
}

// learn changes nothing; the view takes note of the annotation elsewhere (see topology.learn).
type learn struct{}

func (learn) apply(_ *view, _ wire.Encoding, o *wire.Object) ([]byte, bool, error) {
	return o.Raw, true, nil
}

// master gives the Service default/kubernetes another address.
type master struct {
	host string
	port int
}

// String is host:port; "" of none.
func (m master) String() string {
	if m == (master{}) {
		return ""
	}
	return net.JoinHostPort(m.host, strconv.Itoa(m.port))
}

func (m master) apply(_ *view, enc wire.Encoding, o *wire.Object) ([]byte, bool, error) {
	if o.Namespace != "default" || o.Name != "kubernetes" {
		return o.Raw, true, nil
	}
	if enc == wire.JSON {
		raw, err := m.json(o.Raw)
		return raw, true, err
	}
	raw, err := wire.Replace(o.Raw, serviceSpec, func(spec []byte) ([]byte, error) {
		return wire.Rebuild(spec, func(out []byte, num protowire.Number, v, whole []byte) ([]byte, error) {
			switch num {
			case specClusterIP, specClusterIPs:
				return appendString(out, num, m.host), nil
			case specPorts:
				if wire.Path(v, portName) != "https" {
					return append(out, whole...), nil
				}
				port, err := wire.Rebuild(v, func(out []byte, num protowire.Number, _, whole []byte) ([]byte, error) {
					if num == portPort {
						return protowire.AppendVarint(protowire.AppendTag(out, portPort, protowire.VarintType), uint64(m.port)), nil
					}
					return append(out, whole...), nil
				})
				return protowire.AppendBytes(protowire.AppendTag(out, specPorts, protowire.BytesType), port), err
			}
			return append(out, whole...), nil
		})
	})
	return raw, true, err
}

func (m master) json(raw []byte) ([]byte, error) {
	return patch(raw, "spec", func(spec object) error {
		spec.set("clusterIP", m.host)
		spec.set("clusterIPs", []string{m.host})
		var ports []object
		if err := json.Unmarshal(spec["ports"], &ports); err != nil {
			return err
		}
		for _, p := range ports {
			if bytes.Equal(p["name"], []byte(`"https"`)) {
				p.set("port", m.port)
			}
		}
		spec.set("ports", ports)
		return nil
	})
}

// toHub is master for the pods of this node, as long as they are led to the hub.
type toHub struct{}

func (toHub) apply(v *view, enc wire.Encoding, o *wire.Object) ([]byte, bool, error) {
	if v.pods == (master{}) {
		return o.Raw, true, nil
	}
	return v.pods.apply(v, enc, o)
}

// near leaves only endpoints that a Service's topology allows.
type near struct{}

func (near) apply(v *view, enc wire.Encoding, o *wire.Object) ([]byte, bool, error) {
	takes := v.takes(o)
	if takes == nil {
		return o.Raw, true, nil
	}
	if enc == wire.JSON {
		raw, err := nearJSON(o.Raw, takes)
		return raw, true, err
	}
	dropped := false
	raw, err := wire.Rebuild(o.Raw, func(out []byte, num protowire.Number, v, whole []byte) ([]byte, error) {
		if num == sliceEndpoints && !takes(wire.Path(v, endpointNode)) {
			dropped = true
			return out, nil
		}
		return append(out, whole...), nil
	})
	if !dropped {
		raw = o.Raw
	}
	return raw, true, err
}

func nearJSON(raw []byte, takes func(string) bool) ([]byte, error) {
	var slice object
	if err := json.Unmarshal(raw, &slice); err != nil {
		return raw, err
	}
	if len(slice["endpoints"]) == 0 {
		return raw, nil
	}
	var endpoints, left []json.RawMessage
	if err := json.Unmarshal(slice["endpoints"], &endpoints); err != nil {
		return raw, err
	}
	left = []json.RawMessage{}
	for _, e := range endpoints {
		var head struct {
			NodeName string `json:"nodeName"`
		}
		if err := json.Unmarshal(e, &head); err != nil {
			return raw, err
		}
		if takes(head.NodeName) {
			left = append(left, e)
		}
	}
	if len(left) == len(endpoints) {
		return raw, nil
	}
	slice.set("endpoints", left)
	return json.Marshal(slice)
}
