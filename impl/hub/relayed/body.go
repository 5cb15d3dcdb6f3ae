package relayed

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// maxWritten bounds the answers that are looked into: kube-apiserver takes no larger object by default.
const maxWritten = 4 << 20

// leaving reports whether an object has a deletionTimestamp.
func leaving(enc wire.Encoding, o *wire.Object) bool {
	media := runtime.ContentTypeJSON
	if enc == wire.Protobuf {
		media = ""
	}
	m, ok := decodeMetadata(media, o.Raw)
	return ok && m.DeletionTimestamp != nil
}

// peek reads a body, at most maxWritten of it, and puts it back. whole is false if there is more.
func peek(resp *http.Response) (body []byte, whole bool, err error) {
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxWritten+1))
	if err != nil {
		return nil, false, err
	}
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	if len(head) > maxWritten {
		return nil, false, nil
	}
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return head, true, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return nil, false, nil //nolint:nilerr // nothing can be read of it here; its reader will see
	}
	if body, err = io.ReadAll(io.LimitReader(z, 4*maxWritten)); err != nil || len(body) == 4*maxWritten {
		return nil, false, nil //nolint:nilerr // likewise
	}
	return body, true, nil
}

func mediaOf(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}

// kindOf is what a body declares, "" if it is in another form than JSON or protobuf, or broken.
func kindOf(media string, body []byte) string {
	switch media {
	case runtime.ContentTypeProtobuf:
		if k, _, err := wire.SplitEnvelope(body); err == nil {
			return k.Kind
		}
	case runtime.ContentTypeJSON:
		var k metav1.TypeMeta
		if json.Unmarshal(body, &k) == nil {
			return k.Kind
		}
	}
	return ""
}

func statusOf(media string, body []byte) (s metav1.Status, ok bool) {
	if media == runtime.ContentTypeJSON {
		return s, json.Unmarshal(body, &s) == nil
	}
	_, raw, err := wire.SplitEnvelope(body)
	return s, err == nil && s.Unmarshal(raw) == nil
}

func metadataOf(media string, body []byte) (m metav1.PartialObjectMetadata, ok bool) {
	if media == runtime.ContentTypeProtobuf {
		_, raw, err := wire.SplitEnvelope(body)
		if err != nil {
			return m, false
		}
		body = raw
	}
	return decodeMetadata(media, body)
}

// decodeMetadata reads JSON, or a bare protobuf message of whatever kind: its first field is the metadata.
func decodeMetadata(media string, raw []byte) (m metav1.PartialObjectMetadata, ok bool) {
	if media == runtime.ContentTypeJSON {
		return m, json.Unmarshal(raw, &m) == nil
	}
	return m, m.Unmarshal(raw) == nil
}
