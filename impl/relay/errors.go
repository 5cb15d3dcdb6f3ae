package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

var statusKind = wire.Kind{APIVersion: "v1", Kind: "Status"}

// errNotReady is the answer before the first list: never an empty list.
func errNotReady(res Resource) error {
	return retryAfter(apierrors.NewServiceUnavailable(fmt.Sprintf("the cache of %s is not synced yet", res.groupResource())), 1)
}

// errAhead is the answer to a read that is ahead of the cache after waiting for it (storage.NewTooLargeResourceVersionError).
func errAhead(version, reached uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, reached), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func errExpired(message string) error { return apierrors.NewResourceExpired(message) }

func errTooOld(version, oldest uint64) error {
	return errExpired(fmt.Sprintf("too old resource version: %d (%d)", version, oldest))
}

func retryAfter(err *apierrors.StatusError, seconds int32) error {
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	err.ErrStatus.Details.RetryAfterSeconds = seconds
	return err
}

func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.Kind, s.APIVersion = statusKind.Kind, statusKind.APIVersion
	return s
}

// WriteError answers with a Status in the encoding that the client prefers.
func WriteError(w http.ResponseWriter, req *http.Request, err error) {
	s := statusOf(err)
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	media := mediaJSON
	var body []byte
	if a := ParseAccept(strings.Join(req.Header.Values("Accept"), ",")); len(a) > 0 && a[0].Media == mediaProtobuf && a[0].Params["as"] == "" {
		media, body = mediaProtobuf, marshalStatus(s)
	} else {
		body, _ = json.Marshal(s)
		body = append(body, '\n')
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body)
}

func marshalStatus(s metav1.Status) []byte {
	raw, err := s.Marshal()
	if err != nil {
		return nil
	}
	return append(append(wire.AppendEnvelope(nil, statusKind, len(raw)), raw...), wire.EnvelopeTail()...)
}

// errorFrame is the ERROR event of a watch.
func errorFrame(o output, err error) []byte {
	s := statusOf(err)
	if o.media == mediaProtobuf {
		raw, _ := s.Marshal()
		return wire.AppendProtobufFrame(nil, wire.Error, statusKind, raw)
	}
	body, _ := json.Marshal(s)
	return wire.AppendJSONFrame(nil, wire.Error, body)
}
