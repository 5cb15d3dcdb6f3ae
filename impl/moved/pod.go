package moved

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Fields of a Pod, by number.
const (
	podSpec, podStatus, specNode          = 2, 3, 10
	statusConditions, statusIP, statusIPs = protowire.Number(2), protowire.Number(6), protowire.Number(12)
)

// PodForm is the Form of Pods in protobuf: their addresses and their readiness are those that their nodes say.
func (s *Set) PodForm() Form {
	return s.form(wire.Protobuf, func(o *wire.Object) ([]byte, error) {
		c, other, err := s.pod(o)
		if err != nil || !other {
			return nil, err
		}
		return wire.Replace(o.Raw, podStatus, func(status []byte) ([]byte, error) { return statusWith(status, c) })
	})
}

func nodeOf(o *wire.Object) string { return wire.Path(o.Raw, podSpec, specNode) }

// pod is what a Pod is now; other: the cloud has it otherwise.
func (s *Set) pod(o *wire.Object) (now Correction, other bool, err error) {
	n := s.nodes[nodeOf(o)]
	if n == nil {
		return now, false, nil
	}
	h, silent := n.of[types.UID(o.UID)], s.silent(n)
	if h == nil && !silent {
		return now, false, nil
	}
	var status corev1.PodStatus
	err = wire.EachField(o.Raw, func(num protowire.Number, v, _ []byte) error {
		if num != podStatus {
			return nil
		}
		return status.Unmarshal(v)
	})
	was := correctionOf(&corev1.Pod{}, &status)
	if now = was; h != nil {
		now.Ready = h.Ready
		if !h.Stays {
			now.Addresses = h.Addresses
		}
	}
	now.Ready = now.Ready && !silent
	return now, !was.Gone && (now.Ready != was.Ready || !slices.Equal(now.Addresses, was.Addresses)), err
}

// statusWith is a status with other addresses and another readiness. Fields that this build does not know stay.
func statusWith(status []byte, c Correction) ([]byte, error) {
	ready := corev1.PodCondition{Type: corev1.PodReady}
	out, err := wire.Rebuild(status, func(out []byte, num protowire.Number, v, whole []byte) ([]byte, error) {
		switch num {
		case statusIP, statusIPs:
			return out, nil
		case statusConditions:
			var x corev1.PodCondition
			if err := x.Unmarshal(v); err != nil {
				return nil, err
			}
			if x.Type == corev1.PodReady {
				ready = x
				return out, nil
			}
		}
		return append(out, whole...), nil
	})
	if err != nil {
		return nil, err
	}
	if ready.Status = corev1.ConditionFalse; c.Ready {
		ready.Status = corev1.ConditionTrue
	}
	if out, err = appendMessage(out, statusConditions, &ready); err != nil {
		return nil, err
	}
	for i, a := range c.Addresses {
		if i == 0 {
			out = protowire.AppendString(protowire.AppendTag(out, statusIP, protowire.BytesType), a.String())
		}
		if out, err = appendMessage(out, statusIPs, &corev1.PodIP{IP: a.String()}); err != nil {
			return nil, err
		}
	}
	return out, nil
}
