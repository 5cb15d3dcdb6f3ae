package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Patch is a merge patch of a Lease, as JSON: what changes.
type Patch struct {
	Metadata PatchMetadata `json:"metadata,omitzero"`
	Spec     PatchSpec     `json:"spec,omitzero"`
}

// PatchMetadata is what changes of the metadata.
type PatchMetadata struct {
	ResourceVersion string                      `json:"resourceVersion,omitempty"` // on condition of which; "": of none
	Annotations     map[string]*string          `json:"annotations,omitempty"`     // nil takes one away
	ManagedFields   []metav1.ManagedFieldsEntry `json:"managedFields,omitempty"`
}

// PatchSpec is what changes of the spec.
type PatchSpec struct {
	RenewTime      *metav1.MicroTime `json:"renewTime,omitempty"`
	HolderIdentity string            `json:"holderIdentity,omitempty"`
}

// Renewal is a patch of the renewTime, on condition of a version; "": of none.
func Renewal(version string, renew time.Time) *Patch {
	at := metav1.NewMicroTime(renew)
	return &Patch{Metadata: PatchMetadata{ResourceVersion: version}, Spec: PatchSpec{RenewTime: &at}}
}

// Annotate sets an annotation to a value, or takes it away if that is "".
func (p *Patch) Annotate(name, value string) {
	if p.Metadata.Annotations == nil {
		p.Metadata.Annotations = map[string]*string{}
	}
	p.Metadata.Annotations[name] = nil
	if value != "" {
		p.Metadata.Annotations[name] = &value
	}
}

// Unmanage takes all managedFields away: an empty entry does, and kube-apiserver keeps none from then on (its
// skipNonAppliedManager).
func (p *Patch) Unmanage() { p.Metadata.ManagedFields = make([]metav1.ManagedFieldsEntry, 1) }

// onlyRenewTime are the fields of a write of the renewTime.
const onlyRenewTime = `{"f:spec":{"f:renewTime":{}}}`

// Manage has a write of the renewTime by somebody in the place of all managedFields: kube-apiserver keeps the time of
// the write there.
func (p *Patch) Manage(by string) {
	p.Metadata.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: by, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: coordinationv1.SchemeGroupVersion.String(), FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(onlyRenewTime)},
	}}
}

// Managed reports whether a Lease has managedFields of its renewTime, and of nothing else.
func Managed(l *coordinationv1.Lease) bool {
	m := l.ManagedFields
	return len(m) == 1 && m[0].FieldsV1 != nil && string(m[0].FieldsV1.Raw) == onlyRenewTime
}
