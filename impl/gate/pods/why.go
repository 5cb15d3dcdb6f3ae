package pods

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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

	maxTold = 4 << 10 // bytes of what a kubelet says of an error
	again   = 5       // seconds until there may be room
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
	return apierrors.NewTooManyRequests(who+" as many requests at pods as this gate carries; end one of them", again)
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

// refused is the answer where the kubelet has not let the gate in; nil: it has.
func (v *visit) refused() error {
	code := v.said.Load()
	if code != http.StatusUnauthorized && code != http.StatusForbidden {
		return nil
	}
	next := "does not know weir-gate (401): the client certificate has to be of an authority that kubelets trust " +
		"(--client-ca-file), and not expired"
	if code == http.StatusForbidden {
		next = "does not let weir-gate do this (403): bind ClusterRole weir:gate:kubelets to the user of its client " +
			"certificate"
	}
	return status(http.StatusBadGateway, KubeletRefuses, "the kubelet of node "+v.node.Name+" "+next)
}

// why puts into words why the kubelet has not answered.
func (v *visit) why(err error) error {
	if refused := v.refused(); refused != nil {
		return refused
	}
	var known *apierrors.StatusError
	if errors.As(err, &known) {
		return known
	}
	node := v.node.Name
	look := "look whether the node runs, and its kubelet"
	dialed := v.dialed.Load()
	if dialed == nil {
		if v.late.Load() {
			return unreachable(node, fmt.Sprintf("its kubelet has not answered in %v; %s", v.h.c.AnswerWithin, look))
		}
		if code := v.said.Load(); code != 0 {
			return unreachable(node, fmt.Sprintf("its kubelet answers %d, and does not upgrade", code))
		}
		return unreachable(node, "its kubelet has ended the connection; try again: "+err.Error())
	}
	err = *dialed
	var way *reverse.Error
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	switch {
	case errors.Is(err, ErrNoPool):
		return unreachable(node, "it is of no pool, and this gate reaches nodes of pools only; use kubectl itself")
	case errors.As(err, &way):
		return unreachable(node, way.Error()+"; "+ofWay(way, look))
	case errors.As(err, &unknown), errors.As(err, &other):
		return unreachable(node, err.Error()+"; its kubelet shows a certificate that --kubelet-certificate-authority does "+
			"not know for this address: let it be signed (serverTLSBootstrap), or leave out that flag")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return unreachable(node, fmt.Sprintf("no connection to its kubelet in %v; %s", v.h.c.DialWithin, look))
	}
	return unreachable(node, err.Error()+"; "+look)
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

// told is the answer where the kubelet says of a log that it fails, with the code and text of the kubelet.
func told(v *visit, resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxTold))
	code := resp.StatusCode
	if code < http.StatusBadRequest { // a redirection leads nowhere here
		code = http.StatusBadGateway
	}
	e := status(int32(code), metav1.StatusReasonUnknown, //nolint:gosec // three digits
		fmt.Sprintf("the kubelet of node %s: %s %s", v.node.Name, resp.Status, text))
	switch code {
	case http.StatusBadRequest:
		e.ErrStatus.Reason = metav1.StatusReasonBadRequest
	case http.StatusNotFound:
		e.ErrStatus.Reason = metav1.StatusReasonNotFound
	}
	return e
}
