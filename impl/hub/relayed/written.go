package relayed

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Observe looks into the answer to a write of a relayed resource before the writer sees it, and notes what reads here
// have to show from now on.
//
//	answer                                          what later reads show
//	the object                                      its version
//	Status of a DELETE that names the UID           nothing of that UID
//	the objects of a deletecollection               nothing of their UIDs, unless it is on its way out
//	409, 404, 5xx, a Status, a Scale, no answer     what the cloud says of this object when it is asked (see Consistency)
//	of these, what names no object                  the version that the cloud says it is at
//	any other refusal, a dry run                    as before: nothing was written, and nothing was learnt
//
// The resourceVersion of a list is that of before the deletions, so it is ignored.
func (c *Consistency) Observe(t *Target, resp *http.Response) error {
	o := c.of(t.Relay).owed
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
		c.Lost(t)
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
	case kind == t.Relay.Resource().Kind, kind == "PartialObjectMetadata":
		o.wrote(t.key(), media, body)
	case deletion && t.Name == "" && strings.HasSuffix(kind, "List"):
		o.emptied(media, body)
	default:
		o.doubt(t.key())
	}
	return nil
}

// Lost notes a write that has no answer: whether it was done, only the cloud knows.
func (c *Consistency) Lost(t *Target) { c.of(t.Relay).owed.doubt(t.key()) }

// wrote takes the answer that has the object.
func (o *owed) wrote(key, media string, body []byte) {
	m, ok := metadataOf(media, body)
	version, err := wire.ParseVersion(m.ResourceVersion)
	final := m.DeletionTimestamp != nil && len(m.Finalizers) == 0 &&
		(m.DeletionGracePeriodSeconds == nil || *m.DeletionGracePeriodSeconds == 0)
	switch {
	case !ok || err != nil || version == 0:
		o.doubt(key)
	case final:
		// this write may have taken the last finalizer away; the answer then has the version of before the deletion.
		o.reach(version)
		o.doubt(key)
	default:
		o.reach(version)
	}
}

// emptied takes the answer of a deletecollection that has the objects as they were before.
func (o *owed) emptied(media string, body []byte) {
	enc := wire.JSON
	if media == runtime.ContentTypeProtobuf {
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
