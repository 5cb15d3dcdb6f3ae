package relay

import (
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// encoder turns objects into the form that one request negotiated. Its frames may be shared: never write to them.
type encoder struct {
	r       *Relay
	out     output
	headers bool // tables: the columns were sent
}

func (r *Relay) encoder(o output) *encoder { return &encoder{r: r, out: o} }

// own tells whether objects go out as they came.
func (e *encoder) own() bool {
	return e.out.shape == whole && (e.out.media == mediaProtobuf) == (e.r.enc == wire.Protobuf)
}

// kind is what the encoded objects declare.
func (e *encoder) kind() wire.Kind {
	switch e.out.shape {
	case metadataOnly:
		return wire.Kind{APIVersion: e.metaVersion(), Kind: "PartialObjectMetadata"}
	case table:
		return wire.Kind{APIVersion: e.metaVersion(), Kind: "Table"}
	}
	return e.r.kind
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
	case e.own():
		return o.Raw, nil
	case e.out.shape == metadataOnly:
		return e.metadata(o)
	case e.out.shape == table:
		return e.table([]*wire.Object{o}, wire.ListMeta{Version: o.Version})
	}
	m, err := e.r.decode(o)
	if err != nil {
		return nil, err
	}
	if !item {
		m.GetObjectKind().SetGroupVersionKind(gvk(e.r.kind))
	}
	return json.Marshal(m)
}

// decode gives the compiled type of an object.
func (r *Relay) decode(o *wire.Object) (message, error) {
	m := r.cfg.Resource.builtin.new()
	if err := m.Unmarshal(o.Raw); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", r.kind.Kind, o.Key, err)
	}
	return m, nil
}

func (e *encoder) metadata(o *wire.Object) ([]byte, error) {
	if e.r.enc == wire.JSON {
		if e.out.media == mediaProtobuf {
			var m metav1.PartialObjectMetadata
			if err := json.Unmarshal(o.Raw, &m); err != nil {
				return nil, fmt.Errorf("decode metadata of %s: %w", o.Key, err)
			}
			return m.Marshal()
		}
		return wire.MetadataJSON(o.Raw)
	}
	raw, err := wire.MetadataOnly(o.Raw)
	if err != nil || e.out.media == mediaProtobuf {
		return raw, err
	}
	var m metav1.PartialObjectMetadata
	if err := m.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode metadata of %s: %w", o.Key, err)
	}
	m.APIVersion, m.Kind = e.kind().APIVersion, e.kind().Kind
	return json.Marshal(m)
}

// variants are the frames of one event in other forms than its own.
type variants struct {
	mu     sync.Mutex
	frames map[variant][]byte
}

type variant struct {
	media string
	shape shape
	beta  bool
	typ   string
	prev  bool
}

// frame encodes an event under the type and content that a filter gave it. Frames that do not depend on the watcher are
// made once and shared by all.
func (e *encoder) frame(ev *event, typ string, o *wire.Object) ([]byte, error) {
	plain := e.own() && o == ev.cur && typ == ev.typ()
	if plain {
		if f := ev.frame.Load(); f != nil {
			return *f, nil
		}
	}
	if e.out.shape == table {
		return e.encodeFrame(typ, o)
	}
	if plain {
		f, err := e.encodeFrame(typ, o)
		if err == nil {
			ev.frame.Store(&f)
		}
		return f, err
	}
	v := ev.variants.Load()
	if v == nil {
		v = &variants{frames: map[variant][]byte{}}
		if !ev.variants.CompareAndSwap(nil, v) {
			if now := ev.variants.Load(); now != nil {
				v = now
			}
		}
	}
	key := variant{e.out.media, e.out.shape, e.out.beta, typ, o == ev.prev}
	v.mu.Lock()
	defer v.mu.Unlock()
	if f, ok := v.frames[key]; ok {
		return f, nil
	}
	if o == ev.prev { // it left the selector: the previous content under the new version
		var err error
		if o, err = o.WithVersion(e.r.enc, ev.version); err != nil {
			return nil, err
		}
	}
	f, err := e.encodeFrame(typ, o)
	if err == nil {
		v.frames[key] = f
	}
	return f, err
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
		return wire.AppendProtobufFrame(dst, typ, e.kind(), body)
	}
	return wire.AppendJSONFrame(dst, typ, body)
}

// bookmark is the frame of a bookmark: an empty object but for its version, and for the annotation that ends the initial
// events of a streaming list.
func (e *encoder) bookmark(version uint64, annotations map[string]string) ([]byte, error) {
	meta := metav1.ObjectMeta{ResourceVersion: wire.FormatVersion(version), Annotations: annotations}
	partial := metav1.PartialObjectMetadata{ObjectMeta: meta}
	raw, err := partial.Marshal() // a whole bare message, too: metadata is field 1 everywhere
	if err != nil {
		return nil, err
	}
	switch b := e.r.cfg.Resource.builtin; {
	case e.r.enc == wire.JSON:
		metaJSON, err := json.Marshal(meta)
		if err != nil {
			return nil, err
		}
		raw = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s}`, e.r.kind.Kind, e.r.kind.APIVersion, metaJSON)
	case b != nil && b.new != nil:
		m := b.new()
		if err := m.Unmarshal(raw); err != nil {
			return nil, err
		}
		if raw, err = m.Marshal(); err != nil {
			return nil, err
		}
	}
	return e.encodeFrame(wire.Bookmark, &wire.Object{Raw: raw, Version: version})
}
