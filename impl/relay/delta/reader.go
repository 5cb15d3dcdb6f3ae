package delta

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Reader reads the events of a watch in this form. It holds what differences may be built on: the last version of each
// object, which the relay that it feeds holds as well. It is not safe for concurrent use.
type Reader struct {
	in      *bufio.Reader
	enc     wire.Encoding
	kind    wire.Kind
	plain   *wire.EventReader
	objects map[string]*wire.Object // the last version of each, by key
	keys    map[uint64]string       // by version
	waiting []*wire.Event           // that came in one frame
}

// NewReader returns a reader of a watch that goes on behind a state. Its objects must be of one kind.
func NewReader(r io.Reader, enc wire.Encoding, k wire.Kind, state iter.Seq[*wire.Object]) *Reader {
	d := &Reader{
		in: bufio.NewReaderSize(r, 16<<10), enc: enc, kind: k, plain: wire.NewEventReader(new(bytes.Reader), enc, k),
		objects: map[string]*wire.Object{}, keys: map[uint64]string{},
	}
	for o := range state {
		d.keep(o)
	}
	return d
}

// Next returns the next event. At the clean end of the stream it returns io.EOF; a stream that breaks inside a frame is
// io.ErrUnexpectedEOF; a difference to what is not here is ErrBase, and a frame that is none of these a
// *wire.MalformedError. After an error there is nothing more to read.
func (d *Reader) Next() (*wire.Event, error) {
	for len(d.waiting) == 0 {
		k, body, err := d.frame()
		if err != nil {
			return nil, err
		}
		if err := d.open(k, body); errors.Is(err, ErrBase) {
			return nil, err
		} else if err != nil {
			return nil, &wire.MalformedError{What: fmt.Sprintf("delta frame %q", k), Err: err}
		}
	}
	ev := d.waiting[0]
	d.waiting = d.waiting[1:]
	return ev, nil
}

// frame reads one.
func (d *Reader) frame() (kind, []byte, error) {
	n, err := binary.ReadUvarint(d.in)
	if err != nil {
		return 0, nil, err
	}
	if n == 0 || n > wire.MaxObject {
		return 0, nil, &wire.MalformedError{
			What: "delta frame", Err: fmt.Errorf("%d bytes long, 1 to %d are allowed", n, wire.MaxObject),
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

// open makes events of a frame.
func (d *Reader) open(k kind, body []byte) error {
	switch k {
	case changed:
		return d.change(wire.Modified, body)
	case deleted:
		return d.change(wire.Deleted, body)
	case plain:
		return d.event(body)
	case mark:
		return d.mark(body)
	case whole:
		text, err := apply(nil, body)
		if err != nil {
			return err
		}
		for len(text) > 0 {
			n, at := binary.Uvarint(text)
			if at <= 0 || n > uint64(len(text)-at) {
				return fmt.Errorf("an event of %d bytes in %d", n, len(text))
			}
			text = text[at:]
			// Objects of one frame end at different times, and none may keep the others.
			if err := d.event(bytes.Clone(text[:n])); err != nil {
				return err
			}
			text = text[n:]
		}
		return nil
	}
	return errors.New("no such kind of frame")
}

// event takes one in its ordinary form.
func (d *Reader) event(frame []byte) error {
	ev, err := d.plain.Parse(frame)
	if err != nil {
		return err
	}
	if ev.Object != nil {
		d.follow(ev)
	}
	d.waiting = append(d.waiting, ev)
	return nil
}

// change makes an object of what was before.
func (d *Reader) change(typ string, body []byte) error {
	version, at := binary.Uvarint(body)
	if at <= 0 {
		return errors.New("no version of the object before")
	}
	before := d.objects[d.keys[version]]
	if before == nil {
		return fmt.Errorf("%w: none has version %d", ErrBase, version)
	}
	raw, err := apply(before.Raw, body[at:])
	if err != nil {
		return fmt.Errorf("%s: %w", before.Key, err)
	}
	ev, err := d.plain.Parse(wire.AppendFrame(nil, d.enc, typ, d.kind, raw))
	if err != nil {
		return err
	}
	if ev.Object.Key != before.Key {
		return fmt.Errorf("it makes %s of %s", ev.Object.Key, before.Key)
	}
	d.follow(ev)
	d.waiting = append(d.waiting, ev)
	return nil
}

// follow has an event change what is held.
func (d *Reader) follow(ev *wire.Event) {
	if before := d.objects[ev.Object.Key]; before != nil {
		delete(d.keys, before.Version)
		delete(d.objects, before.Key)
	}
	if ev.Type != wire.Deleted {
		d.keep(ev.Object)
	}
}

func (d *Reader) keep(o *wire.Object) { d.objects[o.Key], d.keys[o.Version] = o, o.Key }

func (d *Reader) mark(body []byte) error {
	ev := &wire.Event{Type: wire.Bookmark, Kind: d.kind}
	next := func() (v uint64) {
		v, n := binary.Uvarint(body)
		body = body[max(n, 0):]
		return v
	}
	if ev.Version = next(); ev.Version == 0 || len(body) == 0 {
		return errors.New("a bookmark without a version")
	}
	says := body[0]
	body = body[1:]
	ev.InitialEnd = says&saysEnd != 0
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
		return fmt.Errorf("%d bytes behind what a bookmark says", len(body))
	}
	d.waiting = append(d.waiting, ev)
	return nil
}
