package writes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	maxBody       = 3 << 20 // as kube-apiserver takes at most
)

// readBody reads the body of a request, which stays readable.
func readBody(req *http.Request) ([]byte, error) {
	body, err := peek(&req.Body, maxBody)
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("a body of more than %d bytes", maxBody)
	}
	return body, err
}

// peek reads the beginning of a body, up to a byte more than limit. The body stays what it is.
func peek(body *io.ReadCloser, limit int64) ([]byte, error) {
	rest := *body
	head, err := io.ReadAll(io.LimitReader(rest, limit+1))
	*body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), failing{err}, rest), rest}
	return head, err
}

// failing gives the error that ended a body where it did.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }

// decode gives a body that is a whole object as JSON.
func decode(k kind, contentType string, body []byte) ([]byte, *apierrors.StatusError) {
	media, _, err := mime.ParseMediaType(contentType)
	if contentType == "" {
		media, err = mediaJSON, nil
	}
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest("content type " + contentType + ": " + err.Error())
	case media == mediaJSON:
		body, err = k.declared(body)
	case media == mediaProtobuf:
		var declared wire.Kind
		var raw []byte
		if declared, raw, err = wire.SplitEnvelope(body); err == nil && declared != k.Kind {
			err = fmt.Errorf("it is a %s", declared)
		}
		if err == nil {
			body, err = k.toJSON(raw)
		}
	default:
		return nil, unsupported(contentType)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("the body is no " + k.Kind.Kind + ": " + err.Error())
	}
	return body, nil
}

func unsupported(contentType string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the content type " + strconv.Quote(contentType) +
			" is not taken while the cloud is away: JSON and protobuf are, and of patches strategic merge patches and " +
			"merge patches",
	}}
}

// answer is an object to be sent.
type answer struct {
	code   int
	kind   kind
	object []byte // JSON
}

// write sends an answer in the encoding that the client prefers.
func (a answer) write(w http.ResponseWriter, accept []string) {
	media, ok := prefers(accept)
	if !ok {
		writeStatus(w, accept, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
			Message: "while the cloud is away only the following media types are accepted: " + mediaJSON + ", " + mediaProtobuf,
		}})
		return
	}
	body := a.object
	if media == mediaProtobuf {
		raw, err := a.kind.toProtobuf(a.object)
		if err != nil {
			writeStatus(w, accept, apierrors.NewInternalError(err))
			return
		}
		body = wire.Envelope(a.kind.Kind, raw)
	}
	send(w, a.code, media, body)
}

func send(w http.ResponseWriter, code int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// writeStatus refuses a request.
func writeStatus(w http.ResponseWriter, accept []string, e *apierrors.StatusError) {
	s := e.ErrStatus
	s.Kind, s.APIVersion = "Status", "v1"
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	if media, _ := prefers(accept); media == mediaProtobuf {
		if raw, err := s.Marshal(); err == nil {
			send(w, int(s.Code), mediaProtobuf, wire.Envelope(wire.Kind{APIVersion: "v1", Kind: "Status"}, raw))
			return
		}
	}
	body, _ := json.Marshal(s)
	send(w, int(s.Code), mediaJSON, body)
}

// prefers is the first encoding of an Accept header that can be given; ok is false if none can.
func prefers(accept []string) (media string, ok bool) {
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		return mediaJSON, true
	}
	for _, clause := range strings.Split(header, ",") {
		m, params, err := mime.ParseMediaType(clause)
		if err != nil || params["as"] != "" {
			continue
		}
		switch m {
		case mediaProtobuf:
			return mediaProtobuf, true
		case mediaJSON, "application/*", "*/*":
			return mediaJSON, true
		}
	}
	return mediaJSON, false
}
