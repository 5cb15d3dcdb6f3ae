package hub

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// maxWritten bounds the answers that are looked into: kube-apiserver takes no larger object by default.
const maxWritten = 4 << 20

// observe looks into the answer to a write of a relayed resource before the writer sees it, and notes what reads here have to show from now on.
//
//	answer                                          what later reads show
//	the object                                      its version
//	Status of a DELETE that names the UID           nothing of that UID
//	the objects of a deletecollection               nothing of their UIDs, unless it is on its way out
//	409, 404, 5xx, a Status, a Scale, no answer     what the cloud says of this object when it is asked (see consistency)
//	of these, what names no object                  the version that the cloud says it is at
//	any other refusal, a dry run                    as before: nothing was written, and nothing was learnt
//
// The resourceVersion of a list is that of before the deletions, so it does not count.
func (c *consistency) observe(t *target, resp *http.Response) error {
	o := c.owed[t.index]
	deletion := t.Method == http.MethodDelete
	switch code := resp.StatusCode; {
	case t.Query.Has("dryRun"):
		return nil
	case code == http.StatusNotFound && t.Name == "": // there is no such resource or namespace
		return nil
	case code == http.StatusConflict && t.Name == "": // AlreadyExists
	case code == http.StatusConflict, code == http.StatusNotFound, code >= http.StatusInternalServerError:
		o.doubt(t.key())
		return nil
	case code < 200 || code > 299:
		return nil
	}
	body, whole, err := peek(resp)
	if err != nil {
		c.lost(t)
		return fmt.Errorf("read the answer to a write: %w", err)
	}
	kind, media := "", mediaOf(resp.Header)
	if whole {
		kind = kindOf(media, body)
	}
	switch {
	case kind == "Status":
		s, ok := statusOf(media, body)
		switch {
		case !ok || s.Details == nil:
			o.doubt(t.key())
		case deletion && t.Name != "" && s.Details.UID != "" && resp.StatusCode < 300:
			o.gone(t.key(), string(s.Details.UID), false)
		case resp.StatusCode == http.StatusConflict: // a name that is taken
			o.doubt(t.keyOf(s.Details.Name))
		default:
			o.doubt(t.key())
		}
	case kind == c.relays[t.index].Resource().Kind, kind == "PartialObjectMetadata":
		o.wrote(t.key(), media, body)
	case deletion && t.Name == "" && strings.HasSuffix(kind, "List"):
		o.emptied(media, body)
	default:
		o.doubt(t.key())
	}
	return nil
}

// lost notes a write that has no answer: whether it was done, only the cloud knows.
func (c *consistency) lost(t *target) { c.owed[t.index].doubt(t.key()) }

// wrote takes the answer that has the object.
func (o *owed) wrote(key, media string, body []byte) {
	m, ok := metadataOf(media, body)
	version, err := wire.ParseVersion(m.ResourceVersion)
	final := m.DeletionTimestamp != nil && len(m.Finalizers) == 0 && (m.DeletionGracePeriodSeconds == nil || *m.DeletionGracePeriodSeconds == 0)
	switch {
	case !ok || err != nil || version == 0:
		o.doubt(key)
	case final: // this write may have taken the last finalizer away; the answer then has the version of before the deletion
		o.reach(version)
		o.doubt(key)
	default:
		o.reach(version)
	}
}

// emptied takes the answer of a deletecollection that has the objects as they were before.
func (o *owed) emptied(media string, body []byte) {
	enc := wire.JSON
	if media == mediaProtobuf {
		enc = wire.Protobuf
	}
	var all []*wire.Object
	_, _, err := wire.ReadAnyList(bytes.NewReader(body), enc, func(_ wire.Kind, item *wire.Object) error {
		if all = append(all, item); len(all) > maxFacts {
			return fmt.Errorf("more than %d", maxFacts)
		}
		return nil
	})
	if err != nil {
		o.doubt("")
		return
	}
	for _, item := range all {
		if leaving(enc, item) { // already before: whether this has ended it, its metadata cannot tell
			o.doubt(item.Key)
		} else {
			o.gone(item.Key, item.UID, true)
		}
	}
}

// leaving tells whether an object has a deletionTimestamp.
func leaving(enc wire.Encoding, o *wire.Object) bool {
	media := mediaJSON
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
	case mediaProtobuf:
		if k, _, err := wire.SplitEnvelope(body); err == nil {
			return k.Kind
		}
	case mediaJSON:
		var k metav1.TypeMeta
		if json.Unmarshal(body, &k) == nil {
			return k.Kind
		}
	}
	return ""
}

func statusOf(media string, body []byte) (s metav1.Status, ok bool) {
	if media == mediaJSON {
		return s, json.Unmarshal(body, &s) == nil
	}
	_, raw, err := wire.SplitEnvelope(body)
	return s, err == nil && s.Unmarshal(raw) == nil
}

func metadataOf(media string, body []byte) (m metav1.PartialObjectMetadata, ok bool) {
	if media == mediaProtobuf {
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
	if media == mediaJSON {
		return m, json.Unmarshal(raw, &m) == nil
	}
	return m, m.Unmarshal(raw) == nil
}
