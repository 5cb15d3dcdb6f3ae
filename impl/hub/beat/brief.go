package beat

import (
	"encoding/json"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
)

// brief is a kubelet's update of its Lease as a patch of what changes, with an answer of metadata: less than half of
// the bytes. held is what the cloud holds. shared: others write the Lease as well, so that its version and marks are
// not known. ok is false if more changes than the renewTime.
func brief(whole uplink.Message, beat, held *coordinationv1.Lease, renew time.Time, along lease.Along, shared bool) (
	m uplink.Message, ok bool) {
	if whole.Method != http.MethodPut || !onlyRenews(beat, held) {
		return m, false
	}
	p := lease.Renewal(held.ResourceVersion, renew)
	annotations := along.All()
	annotations[contract.DelegateHeartbeat] = ""
	if shared {
		p.Metadata.ResourceVersion = ""
		p.Annotate(contract.DelegateHeartbeat, "")
	}
	for name, value := range annotations {
		if held.Annotations[name] != value {
			p.Annotate(name, value)
		}
	}
	if len(held.ManagedFields) > 0 {
		p.Unmanage()
	}
	body, err := json.Marshal(p)
	m = uplink.Message{
		Method: http.MethodPatch, URI: whole.URI, Header: whole.Header.Clone(), Body: body, Calm: whole.Calm,
	}
	m.Header.Set("Content-Type", string(types.MergePatchType))
	m.Header.Set("Accept", lease.AcceptMetadata)
	return m, err == nil
}

// onlyRenews reports whether a kubelet changes nothing but the renewTime. It keeps what it has read of the rest.
func onlyRenews(beat, held *coordinationv1.Lease) bool {
	beat, held = beat.DeepCopy(), held.DeepCopy()
	for _, l := range []*coordinationv1.Lease{beat, held} {
		l.Spec.RenewTime, l.ManagedFields, l.TypeMeta = nil, nil, metav1.TypeMeta{}
	}
	return apiequality.Semantic.DeepEqual(beat, held)
}

// answered is the answer to a brief heartbeat as a kubelet expects it; ok is false if it has to be sent as a whole.
func answered(a *uplink.Answer, accept string, held *coordinationv1.Lease, renew time.Time) (full *uplink.Answer,
	ok bool) {
	switch a.Code {
	case http.StatusConflict, http.StatusNotFound, http.StatusUnauthorized, http.StatusTooManyRequests:
		return a, true
	case http.StatusOK:
	default:
		return nil, false
	}
	got, err := lease.Decode(a.Header.Get("Content-Type"), a.Body)
	if err != nil {
		return nil, false
	}
	l := held.DeepCopy()
	l.ObjectMeta = got.ObjectMeta
	lease.SetRenewTime(l, renew)
	contentType, body, err := lease.Encode(l, accept)
	if err != nil {
		return nil, false
	}
	full = &uplink.Answer{Code: a.Code, Header: a.Header.Clone(), Body: body}
	full.Header.Set("Content-Type", contentType)
	return full, true
}
