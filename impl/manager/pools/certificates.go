package pools

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// worst are the reasons of contract.CertificatesCondition for which a person is needed, the worst first. What a pool
// lacks, all of its nodes lack.
var worst = []string{
	contract.AuthorityEnded, contract.AuthorityEndsSoon, contract.CertificateEnded, contract.CertificateEndsSoon,
}

// current is the condition CertificatesCurrent: the worst that the Nodes of a pool tell of certificates, and which of
// them ends first.
func current(nodes []corev1.Node) metav1.Condition {
	c := metav1.Condition{Type: poolv1.CertificatesCurrent, Status: metav1.ConditionTrue, Reason: "Current"}
	ill, of := 0, &corev1.NodeCondition{}
	first, end := "", time.Time{}
	for _, n := range slices.SortedFunc(slices.Values(nodes),
		func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) }) {
		for _, told := range n.Status.Conditions {
			if told.Type != contract.CertificatesCondition || told.Status != corev1.ConditionTrue {
				continue
			}
			ill++
			if is, was := slices.Index(worst, told.Reason), slices.Index(worst, of.Reason); is >= 0 && (was < 0 || is < was) {
				of, c.Message = &told, n.Name+": "+told.Message
			}
		}
		holds, err := digest.ParseHolding(n.Annotations[contract.HoldsAnnotation])
		if err != nil { // root there wrote it
			continue
		}
		if kind, when := holds.First(); kind != "" && (first == "" || when.Before(end)) {
			first, end = fmt.Sprintf("%s of %s", kind, n.Name), when
		}
	}
	switch {
	case of.Reason != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, of.Reason,
			fmt.Sprintf("%d of %d nodes; %s", ill, len(nodes), c.Message)
	case first == "":
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NothingTold", "no hub of the pool has told of certificates"
	default:
		c.Message = fmt.Sprintf("the first to end is %s, at %s", first, end.UTC().Format(time.RFC3339))
	}
	return c
}

// certified is what a Node tells of certificates.
func certified(n *corev1.Node) (told corev1.NodeCondition, holds string) {
	for _, c := range n.Status.Conditions {
		if c.Type == contract.CertificatesCondition {
			told = corev1.NodeCondition{Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	return told, n.Annotations[contract.HoldsAnnotation]
}
