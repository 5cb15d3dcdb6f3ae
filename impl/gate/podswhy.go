package gate

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/reverse"
)

const (
	// NodeUnreachable is the reason where no connection to the kubelet comes about, or it does not answer.
	NodeUnreachable metav1.StatusReason = "NodeUnreachable"
	// KubeletRefuses is the reason where the kubelet does not take the gate for somebody who may.
	KubeletRefuses metav1.StatusReason = "KubeletRefuses"

	maxTold   = 4 << 10 // bytes of what a kubelet says of an error
	podsAgain = 5       // seconds until there may be room
)

func status(code int32, reason metav1.StatusReason, text string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: strings.Join(strings.Fields(text), " "),
	}}
}

func unreachable(node, why string) *apierrors.StatusError {
	return status(http.StatusBadGateway, NodeUnreachable, "weir-gate does not reach node "+node+": "+why)
}

// busy is the answer where all slots are taken.
func busy(full string) error {
	who := "you have"
	if full == "sum" {
		who = "callers have"
	}
	return apierrors.NewTooManyRequests(who+" as many requests at pods as this gate carries; end one of them", podsAgain)
}

// unread is the answer where kube-apiserver does not give the gate what it needs. That it is not there is the
// caller's.
func unread(what string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return err
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return apierrors.NewServiceUnavailable("weir-gate may not get " + what +
			": give it the grants of gate.pods.enabled=true of the chart; " + err.Error())
	}
	return apierrors.NewServiceUnavailable("weir-gate cannot get " + what + " from kube-apiserver: " + err.Error())
}

// ofWay says what to do about a connection into a pool that does not come about.
func ofWay(e *reverse.Error, look string) string {
	switch e.Kind {
	case reverse.NoWay, reverse.Lost:
		return "no hub of the pool is connected to this gate: look by kubectl weir status which node leads, and in its " +
			"hub's log why it does not reach the gate"
	case reverse.Busy, reverse.Full:
		return "end one of the connections, or try again later"
	case reverse.Refused:
		return "the hub that leads does not allow the address: look whether it is an InternalIP of a node of the pool"
	}
	return look
}
