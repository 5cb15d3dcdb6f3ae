package pools

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
)

// TestCurrent: a Pool tells the worst of what its Nodes tell of certificates, how many tell something, and else which
// certificate ends first.
func TestCurrent(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	holds := func(name string, days int) corev1.Node {
		h := digest.Holding{Certificates: map[string]digest.Life{
			"hub":          {Begin: begin, End: begin.Add(time.Duration(days) * 24 * time.Hour)},
			"hub-at-cloud": {Begin: begin, End: begin.Add(400 * 24 * time.Hour)},
		}}
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{contract.HoldsAnnotation: h.Text()}},
		}
	}
	tells := func(n corev1.Node, status corev1.ConditionStatus, reason, message string) corev1.Node {
		n.Status.Conditions = []corev1.NodeCondition{
			{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			}, {Type: contract.CertificatesCondition, Status: status, Reason: reason, Message: message},
		}
		return n
	}
	mad := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-0", Annotations: map[string]string{contract.HoldsAnnotation: "{"}},
	}
	for name, c := range map[string]struct {
		nodes   []corev1.Node
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"no node":         {nil, metav1.ConditionUnknown, "NothingTold", "no hub"},
		"nothing to read": {[]corev1.Node{mad}, metav1.ConditionUnknown, "NothingTold", "no hub"},
		"all is well": {
			[]corev1.Node{holds("edge-2", 90), mad, holds("edge-1", 60), holds("edge-3", 70)}, metav1.ConditionTrue, "Current",
			"the first to end is hub of edge-1, at 2026-03-02T00:00:00Z",
		},
		"was not": {
			[]corev1.Node{tells(holds("edge-1", 90), corev1.ConditionFalse, contract.CertificatesRenewed, "none ends")},
			metav1.ConditionTrue, "Current", "the first to end is hub of edge-1, at 2026-04-01T00:00:00Z",
		},
		"one ends": {
			[]corev1.Node{
				holds("edge-1", 90), tells(holds("edge-2", 60), corev1.ConditionTrue, contract.CertificateEndsSoon,
					"that of kind hub"),
			},
			metav1.ConditionFalse, contract.CertificateEndsSoon, "1 of 2 nodes; edge-2: that of kind hub",
		},
		"the worst": {
			[]corev1.Node{
				tells(holds("edge-3", 60), corev1.ConditionTrue, contract.CertificateEnded, "of edge-3"),
				tells(holds("edge-2", 60), corev1.ConditionTrue, contract.CertificateEnded, "of edge-2"),
				tells(holds("edge-1", 60), corev1.ConditionTrue, contract.CertificateEndsSoon, "of edge-1"), holds("edge-4", 60),
			}, metav1.ConditionFalse, contract.CertificateEnded, "3 of 4 nodes; edge-2: of edge-2",
		},
		"the authority": {
			[]corev1.Node{
				tells(holds("edge-1", 60), corev1.ConditionTrue, contract.CertificateEnded, "of edge-1"),
				tells(holds("edge-2", 60), corev1.ConditionTrue, contract.AuthorityEndsSoon, "that of the pool"),
			}, metav1.ConditionFalse, contract.AuthorityEndsSoon, "2 of 2 nodes; edge-2: that of the pool",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if is := current(c.nodes); is.Status != c.status || is.Reason != c.reason ||
				!strings.HasPrefix(is.Message, c.message) {
				t.Errorf("%s %s %q, want %s %s %q", is.Status, is.Reason, is.Message, c.status, c.reason, c.message)
			}
		})
	}
	if a, b := holds("edge-1", 60), holds("edge-1", 90); alike(&a, &b) {
		t.Error("another end wakes nobody")
	}
	a := tells(holds("edge-1", 60), corev1.ConditionFalse, contract.CertificatesRenewed, "")
	if b := tells(a, corev1.ConditionTrue, contract.CertificateEnded, ""); alike(&a, &b) {
		t.Error("an end wakes nobody")
	}
	if b := a; !alike(&a, &b) {
		t.Error("nothing wakes somebody")
	}
}
