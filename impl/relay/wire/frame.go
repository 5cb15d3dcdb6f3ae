package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of watch events.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
	Error    = "ERROR"
)

// initialEventsEnd marks the bookmark that ends the initial events of a streaming list (KEP-3157).
const initialEventsEnd = "k8s.io/initial-events-end"

// BatchAnnotation is on a bookmark that one relay sends to another: the events up to the version that it names are one
// batch, which leads there from the bookmark's own version and is nothing in between.
const BatchAnnotation = "weir/batch-to"

// AdmitsAnnotation is on such a bookmark if the one that has seen a part of the batch elsewhere, up to this version,
// can go on with it.
const AdmitsAnnotation = "weir/batch-admits"

// TestimonyAnnotation is on bookmarks that one relay sends to another: it says how old the sender's state is.
const TestimonyAnnotation = "weir/testimony"

// Fields of metav1.WatchEvent and runtime.RawExtension.
const (
	eventType    = 1
	eventObject  = 2
	extensionRaw = 1
)

// AppendProtobufFrame appends one frame of a protobuf watch stream: an event with a bare message.
func AppendProtobufFrame(dst []byte, typ string, k Kind, raw []byte) []byte {
	object := envelopeSize(k, len(raw))
	extension := 1 + protowire.SizeBytes(object)
	event := 1 + protowire.SizeBytes(len(typ)) + 1 + protowire.SizeBytes(extension)
	dst = binary.BigEndian.AppendUint32(dst, uint32(event))
	dst = appendString(dst, eventType, typ)
	dst = protowire.AppendTag(dst, eventObject, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(extension))
	dst = protowire.AppendTag(dst, extensionRaw, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(object))
	dst = AppendEnvelope(dst, k, len(raw))
	dst = append(dst, raw...)
	return append(dst, unknownTail...)
}

// AppendJSONFrame appends one value of a JSON watch stream.
func AppendJSONFrame(dst []byte, typ string, object []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	dst = append(dst, `","object":`...)
	dst = append(dst, object...)
	return append(dst, "}\n"...)
}

// AppendFrame appends an event with an object that is held in an encoding.
func AppendFrame(dst []byte, enc Encoding, typ string, k Kind, raw []byte) []byte {
	if enc == JSON {
		return AppendJSONFrame(dst, typ, raw)
	}
	return AppendProtobufFrame(dst, typ, k, raw)
}

// Event is one event of a watch stream.
type Event struct {
	Type string
	// Kind is that of the object or bookmark.
	Kind Kind
	// Object is set for ADDED, MODIFIED, DELETED.
	Object *Object
	// Version is that of the object or bookmark.
	Version uint64
	// InitialEnd is true for the bookmark that ends the initial events of a streaming list.
	InitialEnd bool
	// BatchTo is set for the bookmark that begins a batch: see BatchAnnotation.
	BatchTo uint64
	// BatchAdmits is what AdmitsAnnotation says, 0 without it.
	BatchAdmits uint64
	// Testimony is what a relay says of its state, on a bookmark: see TestimonyAnnotation.
	Testimony string
	// Status is set for ERROR.
	Status *metav1.Status
	// Frame is the whole frame as it came; Object.Raw aliases it where the encoding allows.
	Frame []byte
}

// Annotations are those of a bookmark that says what the event does.
func (ev *Event) Annotations() map[string]string {
	said := map[string]string{}
	if ev.InitialEnd {
		said[initialEventsEnd] = "true"
	}
	if ev.BatchTo != 0 {
		said[BatchAnnotation] = FormatVersion(ev.BatchTo)
	}
	if ev.BatchAdmits != 0 {
		said[AdmitsAnnotation] = FormatVersion(ev.BatchAdmits)
	}
	if ev.Testimony != "" {
		said[TestimonyAnnotation] = ev.Testimony
	}
	return said
}

// EventReader reads a watch stream. It is not safe for concurrent use.
type EventReader struct {
	kind Kind // zero: not known before the first event
	enc  Encoding
	buf  io.Reader
	json *json.Decoder
	cap  *cappedReader
}

// NewEventReader returns a reader of a watch stream whose objects must be of one kind; the zero Kind is that of the
// first event. A protobuf stream is read through a buffer, unless r is an io.ByteReader, and so has one.
func NewEventReader(r io.Reader, enc Encoding, kind Kind) *EventReader {
	e := &EventReader{kind: kind, enc: enc}
	if enc == JSON {
		e.cap = &cappedReader{r: r}
		e.json = json.NewDecoder(e.cap)
	} else if _, buffered := r.(io.ByteReader); buffered {
		e.buf = r
	} else {
		e.buf = bufio.NewReaderSize(r, 16<<10)
	}
	return e
}

// Next returns the next event. At the clean end of the stream it returns io.EOF; a stream that breaks inside a
// frame is io.ErrUnexpectedEOF; a frame that is not what the API sends is a *MalformedError.
func (e *EventReader) Next() (*Event, error) {
	if e.enc == JSON {
		return e.nextJSON()
	}
	var head [4]byte
	if _, err := io.ReadFull(e.buf, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxObject {
		return nil, malformed("watch frame", fmt.Errorf("%d bytes long, at most %d are allowed", n, MaxObject))
	}
	frame, err := appendFrom(head[:], e.buf, int(n))
	if err != nil {
		return nil, err
	}
	return e.Parse(frame)
}

// Parse reads the event of one whole frame, which must not change afterwards. The error is a *MalformedError.
func (e *EventReader) Parse(frame []byte) (ev *Event, err error) {
	switch {
	case e.enc == JSON:
		var f jsonFrame
		if err = json.Unmarshal(frame, &f); err == nil {
			ev, err = e.fromJSON(f)
		}
	case len(frame) < 4:
		err = io.ErrUnexpectedEOF
	default:
		ev, err = e.parse(frame)
	}
	if err != nil {
		return nil, malformed("watch frame", err)
	}
	return ev, nil
}

func (e *EventReader) parse(frame []byte) (*Event, error) {
	ev := &Event{Frame: frame}
	var object []byte
	err := EachField(frame[4:], func(num protowire.Number, v, _ []byte) (err error) {
		switch num {
		case eventType:
			ev.Type = string(v)
		case eventObject:
			object, err = field(v, extensionRaw)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	kind, raw, err := SplitEnvelope(object)
	if err != nil {
		return nil, err
	}
	if ev.Type == Error {
		ev.Status = &metav1.Status{}
		if kind.Kind != "Status" {
			return nil, fmt.Errorf("an ERROR event with a %v", kind)
		}
		return ev, ev.Status.Unmarshal(raw)
	}
	return ev, e.fill(ev, kind, raw, func() error { return ev.parseBookmark(raw) })
}

// fill takes what an event has that is no ERROR: an object of the kind of the stream, or a bookmark.
func (e *EventReader) fill(ev *Event, kind Kind, raw []byte, bookmark func() error) (err error) {
	if e.kind == (Kind{}) {
		e.kind = kind
	}
	if kind != e.kind {
		return fmt.Errorf("an object of %v in a watch of %v", kind, e.kind)
	}
	ev.Kind = kind
	switch ev.Type {
	case Added, Modified, Deleted:
		if ev.Object, err = ParseObject(e.enc, raw); err == nil {
			ev.Version = ev.Object.Version
		}
	case Bookmark:
		err = bookmark()
	default:
		err = fmt.Errorf("unknown type %q", ev.Type)
	}
	if err == nil && ev.Version == 0 {
		err = errors.New("an event without resourceVersion")
	}
	return err
}

func (ev *Event) parseBookmark(raw []byte) error {
	meta, err := field(raw, fieldMetadata)
	if err != nil {
		return err
	}
	return EachField(meta, func(num protowire.Number, v, _ []byte) (err error) {
		switch num {
		case metaVersion:
			ev.Version, err = ParseVersion(string(v))
		case metaAnnotations:
			var key, val string
			if key, val, err = mapEntry(v); err == nil {
				err = ev.annotation(key, val)
			}
		}
		return err
	})
}

// annotation takes what a bookmark says beside its version.
func (ev *Event) annotation(key, val string) (err error) {
	switch key {
	case initialEventsEnd:
		ev.InitialEnd = val == "true"
	case BatchAnnotation:
		ev.BatchTo, err = ParseVersion(val)
	case AdmitsAnnotation:
		ev.BatchAdmits, err = ParseVersion(val)
	case TestimonyAnnotation:
		ev.Testimony = val
	}
	return err
}

// jsonFrame is one value of a JSON watch stream.
type jsonFrame struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (e *EventReader) nextJSON() (*Event, error) {
	var f jsonFrame
	e.cap.used = 0
	if err := e.json.Decode(&f); err != nil {
		var syntax *json.SyntaxError
		var typ *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &typ) {
			return nil, malformed("watch frame", err)
		}
		return nil, err
	}
	ev, err := e.fromJSON(f)
	if err != nil {
		return nil, malformed("watch frame", err)
	}
	return ev, nil
}

func (e *EventReader) fromJSON(f jsonFrame) (*Event, error) {
	ev, object := &Event{Type: f.Type, Frame: AppendJSONFrame(nil, f.Type, f.Object)}, f.Object
	if ev.Type == Error {
		ev.Status = &metav1.Status{}
		return ev, json.Unmarshal(object, ev.Status)
	}
	var m jsonMeta
	if err := json.Unmarshal(object, &m); err != nil {
		return nil, err
	}
	return ev, e.fill(ev, Kind{m.APIVersion, m.Kind}, object, func() (err error) {
		for _, key := range []string{initialEventsEnd, BatchAnnotation, AdmitsAnnotation, TestimonyAnnotation} {
			if err == nil {
				err = ev.annotation(key, m.Metadata.Annotations[key])
			}
		}
		if err == nil {
			ev.Version, err = ParseVersion(m.Metadata.ResourceVersion)
		}
		return err
	})
}
