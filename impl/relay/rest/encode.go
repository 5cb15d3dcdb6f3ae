package rest

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// encoder turns objects into the form that one request negotiated. Its frames may be shared: never write to them.
type encoder struct {
	res     relay.Resource
	clock   clock.PassiveClock // for ages
	out     output
	own     bool      // objects go out as they came
	kind    wire.Kind // that the encoded objects declare
	headers bool      // tables: the columns were sent
}

func newEncoder(res relay.Resource, c clock.PassiveClock, o output) *encoder {
	e := &encoder{
		res: res, clock: c, out: o, own: o.shape == whole && (o.media == mediaProtobuf) == (res.Encoding() == wire.Protobuf),
		kind: res.WireKind(),
	}
	switch o.shape {
	case metadataOnly:
		e.kind = wire.Kind{APIVersion: e.metaVersion(), Kind: "PartialObjectMetadata"}
	case table:
		e.kind = wire.Kind{APIVersion: e.metaVersion(), Kind: "Table"}
	}
	return e
}

func (e *encoder) metaVersion() string {
	if e.out.beta {
		return "meta.k8s.io/v1beta1"
	}
	return "meta.k8s.io/v1"
}

// object encodes one object: a bare message for protobuf, else a JSON object that declares its kind unless item is set
// and kube-apiserver leaves it out in lists.
func (e *encoder) object(o *wire.Object, item bool) ([]byte, error) {
	switch {
	case e.own:
		return o.Raw, nil
	case e.out.shape == metadataOnly:
		return e.metadata(o)
	case e.out.shape == table:
		return e.table([]*wire.Object{o}, wire.ListMeta{Version: o.Version})
	}
	m, err := e.decode(o)
	if err != nil {
		return nil, err
	}
	if !item {
		m.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(e.res.APIVersion(), e.res.Kind))
	}
	return json.Marshal(m)
}

// decode gives the compiled type of an object.
func (e *encoder) decode(o *wire.Object) (relay.Message, error) {
	m := e.res.New()
	if err := m.Unmarshal(o.Raw); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", e.res.Kind, o.Key, err)
	}
	return m, nil
}

// metadata encodes the metadata of an object alone.
func (e *encoder) metadata(o *wire.Object) ([]byte, error) {
	raw, err := o.Metadata(e.res.Encoding())
	if err != nil || (e.out.media == mediaProtobuf) == (e.res.Encoding() == wire.Protobuf) {
		return raw, err
	}
	var m metav1.PartialObjectMetadata
	if e.out.media == mediaProtobuf {
		if err = json.Unmarshal(raw, &m); err == nil {
			raw, err = m.Marshal()
		}
	} else if err = m.Unmarshal(raw); err == nil {
		m.APIVersion, m.Kind = e.kind.APIVersion, e.kind.Kind
		raw, err = json.Marshal(m)
	}
	if err != nil {
		return nil, fmt.Errorf("decode metadata of %s: %w", o.Key, err)
	}
	return raw, nil
}

// table encodes objects as one Table. In a watch, columns come with the first event only.
func (e *encoder) table(items []*wire.Object, meta wire.ListMeta) ([]byte, error) {
	p := tableOf(e.res)
	t := metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: e.metaVersion()},
		ListMeta: metav1.ListMeta{
			ResourceVersion: wire.FormatVersion(meta.Version), Continue: meta.Continue, RemainingItemCount: meta.Remaining,
		},
		Rows: make([]metav1.TableRow, 0, len(items)),
	}
	if !e.headers {
		t.ColumnDefinitions, e.headers = p.columns, true
	}
	now := e.clock.Now()
	for _, o := range items {
		m, err := e.decode(o)
		if err != nil {
			return nil, err
		}
		row := metav1.TableRow{Cells: p.cells(m, now)}
		if p.conditions != nil {
			row.Conditions = p.conditions(m)
		}
		if row.Object, err = e.rowObject(o); err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	return json.Marshal(t)
}

func (e *encoder) rowObject(o *wire.Object) (runtime.RawExtension, error) {
	whatever := output{media: mediaJSON, beta: e.out.beta}
	switch e.out.include {
	case metav1.IncludeNone:
		return runtime.RawExtension{}, nil
	case metav1.IncludeObject:
	default:
		whatever.shape = metadataOnly
	}
	raw, err := newEncoder(e.res, e.clock, whatever).object(o, false)
	return runtime.RawExtension{Raw: raw}, err
}

// frame encodes an event. Frames that do not depend on the watcher are made once and shared by all.
func (e *encoder) frame(ev *relay.Event) ([]byte, error) {
	switch {
	case e.out.delta:
		return e.delta(ev)
	case ev.Type == wire.Bookmark:
		return e.bookmark(&ev.Event)
	case e.out.shape == table:
		return e.encodeFrame(ev.Type, ev.Object)
	}
	form := mvcc.Form{}
	if !e.own {
		form = mvcc.Form{Media: e.out.media, Shape: uint8(e.out.shape), Beta: e.out.beta}
	}
	return ev.Frame(form, func() ([]byte, error) { return e.encodeFrame(ev.Type, ev.Object) })
}

// delta encodes an event for a reader that has the object before.
func (e *encoder) delta(ev *relay.Event) ([]byte, error) {
	if ev.Type == wire.Bookmark {
		return wire.AppendDeltaBookmark(nil, &ev.Event), nil
	}
	return ev.Frame(mvcc.Form{Media: wire.DeltaMedia}, func() ([]byte, error) {
		if before := ev.Before(); before != nil {
			return wire.AppendDeltaChange(nil, ev.Type, before, ev.Object)
		}
		frame, err := e.encodeFrame(ev.Type, ev.Object)
		return wire.AppendDeltaEvents(nil, frame), err
	})
}

func (e *encoder) encodeFrame(typ string, o *wire.Object) ([]byte, error) {
	body, err := e.object(o, false)
	if err != nil {
		return nil, err
	}
	return e.appendFrame(nil, typ, body), nil
}

func (e *encoder) appendFrame(dst []byte, typ string, body []byte) []byte {
	if e.out.media == mediaProtobuf {
		return wire.AppendProtobufFrame(dst, typ, e.kind, body)
	}
	return wire.AppendJSONFrame(dst, typ, body)
}

// bookmark is the frame of a bookmark: an empty object but for its version, and for what it says.
func (e *encoder) bookmark(mark *wire.Event) ([]byte, error) {
	meta := metav1.ObjectMeta{ResourceVersion: wire.FormatVersion(mark.Version), Annotations: mark.Annotations()}
	partial := metav1.PartialObjectMetadata{ObjectMeta: meta}
	raw, err := partial.Marshal() // a whole bare message, too: metadata is field 1 everywhere
	if err != nil {
		return nil, err
	}
	switch m := e.res.New(); {
	case e.res.Encoding() == wire.JSON:
		metaJSON, err := json.Marshal(meta)
		if err != nil {
			return nil, err
		}
		raw = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s}`, e.res.Kind, e.res.APIVersion(), metaJSON)
	case m != nil:
		if err := m.Unmarshal(raw); err != nil {
			return nil, err
		}
		if raw, err = m.Marshal(); err != nil {
			return nil, err
		}
	}
	return e.encodeFrame(wire.Bookmark, &wire.Object{Raw: raw, Version: mark.Version})
}

// Frames are objects as a watch shows them, as modified, in the encoding that the resource is held in; then a bookmark
// with a version, unless that is 0.
func Frames(res relay.Resource, modified []*wire.Object, bookmark uint64) (all []byte, err error) {
	e := newEncoder(res, nil, output{media: mediaOf(res)})
	for _, o := range modified {
		all = e.appendFrame(all, wire.Modified, o.Raw)
	}
	if bookmark == 0 {
		return all, nil
	}
	mark, err := e.bookmark(&wire.Event{Type: wire.Bookmark, Version: bookmark})
	return append(all, mark...), err
}
