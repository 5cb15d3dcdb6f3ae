package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// RetryLater is the Retry-After of answers about a cloud that is away, in seconds.
const RetryLater = 1

// Unavailable says that the cloud cannot be asked. Nothing was done: the request may be sent again.
func Unavailable(why string) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable(why)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: RetryLater}
	return err
}

// OK is an answer of the hub to a request that it does not pass on. Nobody knows how long the body is.
func OK(req *http.Request, header http.Header, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: -1, Request: req,
	}
}

// ComeAgain is a refusal of a watch that goes on, in words after which client-go keeps what it has and tries again
// (isWatchErrorRetriable of its reflector). Told that the cloud cannot be asked it would list, as soon as that is over,
// what the watch would have spared.
func ComeAgain(refusal *apierrors.StatusError) *apierrors.StatusError {
	if refusal.ErrStatus.Code != http.StatusServiceUnavailable {
		return refusal
	}
	return apierrors.NewTooManyRequests(refusal.ErrStatus.Message, RetryLater)
}

// BadGateway says that the cloud was asked and the answer was lost. Only a read may be sent again without a thought.
func BadGateway(read bool, why string) *apierrors.StatusError {
	err := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadGateway, Reason: metav1.StatusReasonUnknown, Message: why,
	}}
	if read {
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: RetryLater}
	}
	return err
}

// Forbidden words a denial as kube-apiserver does (endpoints/handlers/responsewriters/errors.go).
func Forbidden(user string, a identity.Attributes, reason string) *apierrors.StatusError {
	group := schema.GroupResource{Group: a.Group, Resource: a.Resource}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	msg := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", user, a.Verb, resource, a.Group, where)
	if reason != "" {
		msg += ": " + reason
	}
	return apierrors.NewForbidden(group, a.Name, errors.New(msg))
}

// Write answers with a Status.
func Write(w http.ResponseWriter, err *apierrors.StatusError) {
	s := err.ErrStatus
	s.Kind, s.APIVersion = "Status", "v1"
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s)
}

// Decode reads the Status of an answer that refuses.
func Decode(resp *http.Response, answer []byte) *apierrors.StatusError {
	var s metav1.Status
	var err error
	if strings.HasPrefix(resp.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		var raw []byte
		if _, raw, err = wire.SplitEnvelope(answer); err == nil {
			err = s.Unmarshal(raw)
		}
	} else {
		err = json.Unmarshal(answer, &s)
	}
	if err != nil || int(s.Code) != resp.StatusCode {
		s = metav1.Status{
			Status: metav1.StatusFailure, Code: int32(resp.StatusCode), Message: http.StatusText(resp.StatusCode),
		}
		switch resp.StatusCode {
		case http.StatusUnauthorized:
			s.Reason = metav1.StatusReasonUnauthorized
		case http.StatusForbidden:
			s.Reason = metav1.StatusReasonForbidden
		case http.StatusBadRequest:
			s.Reason = metav1.StatusReasonBadRequest
		}
	}
	return &apierrors.StatusError{ErrStatus: s}
}
