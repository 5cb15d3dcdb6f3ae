package hop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Bounds of what is kept of an answer, in bytes.
const (
	maxMessage = 4 << 10
	maxReason  = 100
)

// StatusError is an answer other than 200.
type StatusError struct {
	Code       int
	Reason     metav1.StatusReason
	Message    string
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("answer %d %s: %s", e.Code, e.Reason, e.Message)
}

// Status makes the error one that a relay can answer with, and tell others.
func (e *StatusError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: int32(e.Code), Reason: e.Reason, Message: e.Message}
}

// Answered is the code of the answer that an error is about, 0 if there was none.
func Answered(err error) int {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Code
	}
	return 0
}

// RetryAfter is how long the answer that an error is about asks to wait, 0 if it does not.
func RetryAfter(err error) time.Duration {
	var s *StatusError
	if errors.As(err, &s) {
		return s.RetryAfter
	}
	return 0
}

// Gone reports whether an upstream answered 410: it has forgotten the version that was asked for.
func Gone(err error) bool { return Answered(err) == http.StatusGone }

// FromStatus is the error that a status tells, as an event of a watch or as an answer.
func FromStatus(s *metav1.Status) *StatusError {
	e := &StatusError{Code: int(s.Code), Reason: s.Reason[:min(len(s.Reason), maxReason)], Message: s.Message}
	if len(e.Message) > maxMessage {
		e.Message = strings.ToValidUTF8(e.Message[:maxMessage], "")
	}
	if s.Details != nil {
		e.RetryAfter = time.Duration(s.Details.RetryAfterSeconds) * time.Second
	}
	return e
}

// readStatus reads an answer other than 200.
func readStatus(resp *http.Response, body io.Reader) error {
	b, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	var s metav1.Status
	if strings.HasPrefix(resp.Header.Get("Content-Type"), acceptProtobuf) {
		if k, raw, err := wire.SplitEnvelope(b); err == nil && k.Kind == "Status" {
			_ = s.Unmarshal(raw)
		}
	} else {
		_ = json.Unmarshal(b, &s)
	}
	e := FromStatus(&s)
	e.Code = resp.StatusCode
	if e.Message == "" {
		e.Message = strings.TrimSpace(string(b[:min(len(b), 200)]))
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}
