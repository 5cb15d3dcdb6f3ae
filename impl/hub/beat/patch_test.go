package beat

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/heartbeat"
)

// TestForwardPatch: a forward is no more than what it has to be. A Lease that has other managedFields than those of the
// renewTime, or none, gets these.
func TestForwardPatch(t *testing.T) {
	a := heartbeat.Action{Lease: heartbeat.Lease{
		Version: "123456789", Renew: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Delegated: true, Managed: true,
	}}
	for annotate, want := range map[bool]string{
		false: `{"metadata":{"resourceVersion":"123456789"},"spec":{"renewTime":"2026-01-02T03:04:05.000006Z"}}`,
		true: `{"metadata":{"resourceVersion":"123456789","annotations":{"openyurt.io/delegate-heartbeat":"true"}},` +
			`"spec":{"renewTime":"2026-01-02T03:04:05.000006Z"}}`,
	} {
		a.Annotate = annotate
		if got, err := forwardPatch(a); err != nil || string(got) != want {
			t.Errorf("got %s, %v", got, err)
		}
	}
	a.Annotate, a.Lease.Managed = false, false
	const clock = `{"metadata":{"resourceVersion":"123456789","managedFields":[{"manager":"weir-hub",` +
		`"operation":"Update","apiVersion":"coordination.k8s.io/v1","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:spec":{"f:renewTime":{}}}}]},"spec":{"renewTime":"2026-01-02T03:04:05.000006Z"}}`
	if got, err := forwardPatch(a); err != nil || string(got) != clock {
		t.Errorf("got %s, %v", got, err)
	}
}
