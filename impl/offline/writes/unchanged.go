package writes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// unchanged answers a write of this node's Node that would change nothing; nil if it would change something. Programs
// on the node send such writes when they start: CNIs say what they said before. flannel and Calico report once more
// that NetworkUnavailable is False, Calico may update the whole Node as it has read it, Cilium annotates it again.
//
// The answer is the Node as it is known here, so such a write is a read:
//   - Who: any client of the node that may get this Node, by what the cloud decided (Config.MayGet). That it may also
//     write is not known here, and does not matter.
//   - Bounds: nothing is queued, kept or changed, and the body is as long as any other.
//   - After the return the cloud sees nothing of it. It has what was written before, and that is the same.
//
// When a condition was last reported, and when it changed, does not count if the condition is the same otherwise. So
// the cloud shows the former times. Kubernetes judges NetworkUnavailable by its status alone.
//
// A patch is compared with what clients see here. An update is compared with what the cloud showed, too: a relay shows
// a Node without what waits. Preconditions hold.
func (w *waiting) unchanged(r *write) *answer {
	o, refused := w.known(r.target, nodeKind())
	if refused != nil {
		return nil
	}
	shown := []document{o.mine}
	if r.verb == "update" {
		shown = append(shown, o.cloud)
	}
	for _, before := range shown {
		now, refused := changed(r, nodeKind(), &known{mine: before})
		if refused == nil && sameNode(before, now) {
			a, _ := found(nodeKind(), o.mine) // which was parsed
			return a
		}
	}
	return nil
}

// sameNode reports whether two states of a Node say the same, but for metadata that the caller has compared.
func sameNode(a, b document) bool {
	x, y := a.in("status"), b.in("status")
	rest, _ := x.with("conditions", nil).bytes() // of parts that were parsed
	others, _ := y.with("conditions", nil).bytes()
	return same(a["spec"], b["spec"]) && same(labelling(a), labelling(b)) && same(rest, others) &&
		reflect.DeepEqual(conditions(x), conditions(y))
}

// conditions are those of a status, without their times, in an order of their own.
func conditions(status document) (all []map[string]any) {
	_ = json.Unmarshal(status["conditions"], &all) // what is none is like no conditions: nothing comes of it
	for _, c := range all {
		delete(c, "lastHeartbeatTime")
		delete(c, "lastTransitionTime")
	}
	slices.SortFunc(all, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["type"]), fmt.Sprint(b["type"]))
	})
	return all
}
