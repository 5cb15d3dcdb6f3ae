package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

// DeltaReader reads the events of a watch in this form. It holds what differences may be built on: the last version of
// each object, which the relay that it feeds holds as well. It is not safe for concurrent use.
type DeltaReader struct {
	in      *bufio.Reader
	enc     Encoding
	kind    Kind
	plain   *EventReader
	objects map[string]*Object // the last version of each, by key
	keys    map[uint64]string  // by version
	rest    []byte             // of a frame of events, those that are not parsed yet
	named   []byte             // of a frame of names, those that are not taken yet
	has     map[string]*Object // by name: initial objects that need not come
}

// NewDeltaReader returns a reader of a watch that goes on behind a state. Its objects must be of one kind.
func NewDeltaReader(r io.Reader, enc Encoding, k Kind, state iter.Seq[*Object]) *DeltaReader {
	d := &DeltaReader{
		in: bufio.NewReaderSize(r, 16<<10), enc: enc, kind: k, plain: NewEventReader(new(bytes.Reader), enc, k),
		objects: map[string]*Object{}, keys: map[uint64]string{},
	}
	for o := range state {
		d.keep(o)
	}
	return d
}

// Has says what the reader of a list has, which it need not be sent.
func (d *DeltaReader) Has(all iter.Seq[*Object]) {
	d.has = map[string]*Object{}
	for o := range all {
		d.has[string(AppendDeltaName(nil, o))] = o
	}
}

// Next returns the next event. At the clean end of the stream it returns io.EOF; a stream that breaks inside a frame is
// io.ErrUnexpectedEOF; a difference to what is not here is ErrBase, and a frame that is none of these a
// *MalformedError. After an error there is nothing more to read.
func (d *DeltaReader) Next() (*Event, error) {
	k, body := whole, []byte(nil)
	if len(d.named) > 0 {
		k = same
	}
	for k == whole && len(d.rest) == 0 {
		var err error
		if k, body, err = d.frame(); err != nil {
			return nil, err
		}
		switch k {
		case whole:
			d.rest, err = apply(nil, body)
		case same:
			d.named = body
		}
		if err != nil {
			return nil, wrong(k, err)
		}
	}
	ev, err := d.open(k, body)
	if err != nil {
		return nil, wrong(k, err)
	}
	return ev, nil
}

// wrong is the error of a frame that makes no event.
func wrong(k kind, err error) error {
	if errors.Is(err, ErrBase) {
		return err
	}
	return &MalformedError{What: fmt.Sprintf("delta frame %q", k), Err: err}
}

// frame reads one.
func (d *DeltaReader) frame() (kind, []byte, error) {
	n, err := binary.ReadUvarint(d.in)
	if err != nil {
		return 0, nil, err
	}
	if n == 0 || n > maxFrame {
		return 0, nil, &MalformedError{
			What: "delta frame", Err: fmt.Errorf("%d bytes long, 1 to %d are allowed", n, maxFrame),
		}
	}
	var body bytes.Buffer // it grows with what arrives, so that a broken length costs no memory
	if _, err := io.CopyN(&body, d.in, int64(n)); errors.Is(err, io.EOF) {
		return 0, nil, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, nil, err
	}
	return kind(body.Bytes()[0]), body.Bytes()[1:], nil
}

// open makes the event of a frame, or the next one of those in a frame of several.
func (d *DeltaReader) open(k kind, body []byte) (*Event, error) {
	switch k {
	case changed:
		return d.change(Modified, body)
	case deleted:
		return d.change(Deleted, body)
	case plain:
		return d.event(body)
	case mark:
		return d.mark(body)
	case whole:
		return d.next()
	case same:
		return d.known()
	}
	return nil, errors.New("no such kind of frame")
}

// next takes the next event of a frame of several. Each is parsed when its turn has come: an event takes many times its
// bytes, and there may be hundreds of thousands.
func (d *DeltaReader) next() (*Event, error) {
	n, at := binary.Uvarint(d.rest)
	if at <= 0 || n > uint64(len(d.rest)-at) {
		return nil, fmt.Errorf("an event of %d bytes in %d", n, len(d.rest))
	}
	// Objects of one frame end at different times, and none may keep the others.
	frame := bytes.Clone(d.rest[at:][:n])
	if d.rest = d.rest[at:][n:]; len(d.rest) == 0 {
		d.rest = nil
	}
	return d.event(frame)
}

// event takes one in its ordinary form.
func (d *DeltaReader) event(frame []byte) (*Event, error) {
	ev, err := d.plain.Parse(frame)
	if err == nil && ev.Object != nil {
		d.follow(ev)
	}
	return ev, err
}

// known is the next of the objects that are here already. Each is named once.
func (d *DeltaReader) known() (*Event, error) {
	if len(d.named) < nameSize {
		return nil, fmt.Errorf("%d bytes are no name", len(d.named))
	}
	name := string(d.named[:nameSize])
	d.named = d.named[nameSize:]
	o := d.has[name]
	if o == nil {
		return nil, fmt.Errorf("%w: it has one that is not here, or twice", ErrBase)
	}
	delete(d.has, name)
	ev := &Event{Type: Added, Kind: d.kind, Object: o, Version: o.Version}
	d.follow(ev)
	return ev, nil
}

// change makes an object of what was before.
func (d *DeltaReader) change(typ string, body []byte) (*Event, error) {
	version, at := binary.Uvarint(body)
	if at <= 0 {
		return nil, errors.New("no version of the object before")
	}
	before := d.objects[d.keys[version]]
	if before == nil {
		return nil, fmt.Errorf("%w: none has version %d", ErrBase, version)
	}
	raw, err := apply(before.Raw, body[at:])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", before.Key, err)
	}
	ev, err := d.plain.Parse(AppendFrame(nil, d.enc, typ, d.kind, raw))
	if err != nil {
		return nil, err
	}
	if ev.Object.Key != before.Key {
		return nil, fmt.Errorf("it makes %s of %s", ev.Object.Key, before.Key)
	}
	d.follow(ev)
	return ev, nil
}

// follow has an event change what is held.
func (d *DeltaReader) follow(ev *Event) {
	if before := d.objects[ev.Object.Key]; before != nil {
		delete(d.keys, before.Version)
		delete(d.objects, before.Key)
	}
	if ev.Type != Deleted {
		d.keep(ev.Object)
	}
}

func (d *DeltaReader) keep(o *Object) { d.objects[o.Key], d.keys[o.Version] = o, o.Key }

func (d *DeltaReader) mark(body []byte) (*Event, error) {
	ev := &Event{Type: Bookmark, Kind: d.kind}
	next := func() (v uint64) {
		v, n := binary.Uvarint(body)
		body = body[max(n, 0):]
		return v
	}
	if ev.Version = next(); ev.Version == 0 || len(body) == 0 {
		return nil, errors.New("a bookmark without a version")
	}
	says := body[0]
	body = body[1:]
	if ev.InitialEnd = says&saysEnd != 0; ev.InitialEnd {
		d.has = nil
	}
	if says&saysBatch != 0 {
		ev.BatchTo = next()
	}
	if says&saysAdmits != 0 {
		ev.BatchAdmits = next()
	}
	if says&saysTestimony != 0 {
		ev.Testimony, body = string(body), nil
	}
	if len(body) > 0 {
		return nil, fmt.Errorf("%d bytes behind what a bookmark says", len(body))
	}
	return ev, nil
}
