package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// ListMeta is what a list says of itself.
type ListMeta struct {
	Version   uint64
	Continue  string
	Remaining *int64 // nil: unknown
	// that the list declares, in JSON, e.g. EndpointSliceList. Of a custom resource it is what its definition says.
	Kind string
}

// ReadList reads a list body item by item and gives each to f; it holds one item at a time. A body that ends
// early is io.ErrUnexpectedEOF, one that is not a list of kind a *MalformedError; items given before are then void.
// The kind is that of the items, e.g. EndpointSlice; the body's must be its list.
func ReadList(r io.Reader, enc Encoding, kind Kind, f func(*Object) error) (ListMeta, error) {
	_, m, err := readList(r, enc, kind, func(_ Kind, o *Object) error { return f(o) })
	return m, err
}

// ReadAnyList reads a list of whatever kind, as ReadList does, and tells the kind of its items.
func ReadAnyList(r io.Reader, enc Encoding, f func(Kind, *Object) error) (Kind, ListMeta, error) {
	return readList(r, enc, Kind{}, f)
}

func readList(r io.Reader, enc Encoding, kind Kind, f func(Kind, *Object) error) (Kind, ListMeta, error) {
	var m ListMeta
	var err error
	if enc == JSON {
		m, err = readJSONList(r, &kind, f)
	} else {
		m, err = readProtobufList(bufio.NewReaderSize(r, 64<<10), &kind, f)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && m.Version == 0 {
		err = malformed("list", errors.New("it has no resourceVersion"))
	}
	return kind, m, err
}

// ofList checks that a body declares a list of this kind. If it is not known yet, it is that of the list.
func (k *Kind) ofList(got Kind) error {
	item, isList := strings.CutSuffix(got.Kind, "List")
	switch {
	case *k == Kind{}:
		if !isList || item == "" {
			return malformed("list", fmt.Errorf("a %v where a list was asked for", got))
		}
		*k = Kind{got.APIVersion, item}
	case !isList || got.APIVersion != k.APIVersion || item != k.Kind:
		return malformed("list", fmt.Errorf("a %v where a list of %v was asked for", got, *k))
	}
	return nil
}

// messageReader reads the fields of one protobuf message from a stream.
type messageReader struct {
	*bufio.Reader
	left int64 // bytes of the message still to come; < 0: unknown, ends at EOF
}

func (m *messageReader) ReadByte() (byte, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	b, err := m.Reader.ReadByte()
	if err == nil && m.left > 0 {
		m.left--
	}
	return b, err
}

func (m *messageReader) varint() (uint64, error) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b, err := m.ReadByte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, malformed("list", errors.New("a varint of more than 10 bytes"))
}

// next returns the number, type and (for length-delimited fields) length of the next field. io.EOF: no more.
func (m *messageReader) next() (num protowire.Number, typ protowire.Type, n int64, err error) {
	if m.left == 0 {
		return 0, 0, 0, io.EOF
	}
	tag, err := m.varint()
	if errors.Is(err, io.EOF) && m.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, 0, 0, err
	}
	num, typ = protowire.DecodeTag(tag)
	switch typ {
	case protowire.BytesType:
		var l uint64
		if l, err = m.varint(); err == nil && (l > 1<<40 || m.left >= 0 && int64(l) > m.left) {
			err = malformed("list", fmt.Errorf("field %d is %d bytes long, more than its message", num, l))
		}
		n = int64(l)
	case protowire.VarintType:
		_, err = m.varint()
	default:
		err = malformed("list", fmt.Errorf("field %d has wire type %d", num, typ))
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return num, typ, n, err
}

// bytes reads a field of n bytes.
func (m *messageReader) bytes(n int64) ([]byte, error) {
	if n > MaxObject {
		return nil, malformed("list", fmt.Errorf("an item of %d bytes, at most %d are allowed", n, MaxObject))
	}
	if m.left >= 0 {
		m.left -= n
	}
	return appendFrom(nil, m.Reader, int(n))
}

func readProtobufList(r *bufio.Reader, kind *Kind, f func(Kind, *Object) error) (ListMeta, error) {
	var m ListMeta
	magic := make([]byte, len(protobufMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		return m, noEOF(err)
	}
	if string(magic) != string(protobufMagic) {
		return m, malformed("list", errors.New("it does not begin with k8s\\0"))
	}
	var got Kind
	unknown := &messageReader{Reader: r, left: -1}
	for {
		num, _, n, err := unknown.next()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		if num == unknownRaw {
			if err := kind.ofList(got); err != nil {
				return m, err
			}
			if err := readItems(&messageReader{Reader: r, left: n}, &m, *kind, f); err != nil {
				return m, err
			}
			continue
		}
		v, err := unknown.bytes(n)
		if err == nil && num == unknownTypeMeta {
			err = got.parse(v)
		}
		if err != nil {
			return m, err
		}
	}
}

func readItems(r *messageReader, m *ListMeta, kind Kind, f func(Kind, *Object) error) error {
	for {
		num, typ, n, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if typ != protowire.BytesType {
			continue
		}
		v, err := r.bytes(n)
		if err != nil {
			return err
		}
		switch num {
		case fieldMetadata:
			err = m.parse(v)
		case fieldItems:
			var o *Object
			if o, err = ParseObject(Protobuf, v); err == nil {
				err = f(kind, o)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (m *ListMeta) parse(b []byte) error {
	err := EachField(b, func(num protowire.Number, v, whole []byte) (err error) {
		switch {
		case num == listVersion && v != nil:
			m.Version, err = ParseVersion(string(v))
		case num == listContinue && v != nil:
			m.Continue = string(v)
		case num == listRemaining && v == nil:
			_, _, tag := protowire.ConsumeTag(whole)
			n, _ := protowire.ConsumeVarint(whole[tag:])
			left := int64(n)
			m.Remaining = &left
		}
		return err
	})
	if err != nil {
		return malformed("list metadata", err)
	}
	return nil
}

// appendListMeta appends the fields of a bare ListMeta message.
func appendListMeta(dst []byte, m ListMeta) []byte {
	dst = appendString(dst, 1, "")
	dst = appendString(dst, listVersion, FormatVersion(m.Version))
	dst = appendString(dst, listContinue, m.Continue)
	if m.Remaining != nil {
		dst = protowire.AppendTag(dst, listRemaining, protowire.VarintType)
		dst = protowire.AppendVarint(dst, uint64(*m.Remaining))
	}
	return dst
}

// AppendItemHead appends what stands before an item of n bytes in a bare list message.
func AppendItemHead(dst []byte, n int) []byte {
	dst = protowire.AppendTag(dst, fieldItems, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(n))
}

// AppendListHead appends the start of a protobuf list body whose items, heads included, are n bytes in all; the items
// follow, and then EnvelopeTail. kind is that of the items.
func AppendListHead(dst []byte, kind Kind, m ListMeta, n int) []byte {
	meta := appendListMeta(nil, m)
	dst = AppendEnvelope(dst, Kind{kind.APIVersion, kind.Kind + "List"}, 1+protowire.SizeBytes(len(meta))+n)
	dst = protowire.AppendTag(dst, fieldMetadata, protowire.BytesType)
	return protowire.AppendBytes(dst, meta)
}

// readJSONList reads a list in whatever order its fields come: typed lists declare their kind before the items, those
// of custom resources after them, but there each item declares its own.
func readJSONList(r io.Reader, kind *Kind, f func(Kind, *Object) error) (ListMeta, error) {
	var m ListMeta
	limit := &cappedReader{r: r}
	d := json.NewDecoder(limit)
	if err := expect(d, json.Delim('{')); err != nil {
		return m, err
	}
	var list Kind
	asked, own := *kind, false // its items declare their kind
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return m, err
		}
		switch key {
		case "metadata":
			var meta struct {
				ResourceVersion, Continue string
				RemainingItemCount        *int64
			}
			if err := d.Decode(&meta); err != nil {
				return m, jsonError(err)
			}
			m.Continue, m.Remaining = meta.Continue, meta.RemainingItemCount
			if m.Version, err = ParseVersion(meta.ResourceVersion); err != nil {
				return m, malformed("list metadata", err)
			}
		case "kind":
			if err := d.Decode(&list.Kind); err != nil {
				return m, jsonError(err)
			}
		case "apiVersion":
			if err := d.Decode(&list.APIVersion); err != nil {
				return m, jsonError(err)
			}
		case "items":
			if strings.HasSuffix(list.Kind, "List") && list.APIVersion != "" && asked.Kind == "" {
				_ = kind.ofList(list) // it can be one whose definition gives the list another name: then items say so
			}
			if own, err = readJSONItems(d, limit, kind, asked.Kind == "", f); err != nil {
				return m, err
			}
		default:
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return m, jsonError(err)
			}
		}
	}
	if m.Kind = list.Kind; !own || list.Kind == "" || list.Kind == "Status" || list.APIVersion != kind.APIVersion {
		if err := kind.ofList(list); err != nil {
			return m, err
		}
	}
	return m, expect(d, json.Delim('}'))
}

// readJSONItems reads the items of a list. own reports whether each declares its kind, as those of custom resources do,
// or there are none of a kind that was asked for: then the name of their list's kind says nothing of them, and a kind
// that was guessed by it gives way to that of the first one.
func readJSONItems(d *json.Decoder, limit *cappedReader, kind *Kind, guessed bool, f func(Kind, *Object) error) (
	own bool, err error) {
	n, without := 0, 0
	first, err := d.Token()
	if err != nil {
		return false, jsonError(err)
	}
	if first == nil { // null: kube-apiserver's empty lists of metadata
		return false, nil
	}
	if first != json.Delim('[') {
		return false, malformed("list", fmt.Errorf("%v where items were expected", first))
	}
	for d.More() {
		limit.used = 0
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return false, jsonError(err)
		}
		var m jsonMeta
		if err := json.Unmarshal(raw, &m); err != nil {
			return false, jsonError(err)
		}
		switch got := (Kind{m.APIVersion, m.Kind}); {
		case m.Kind == "" && kind.Kind == "":
			return false, malformed("list", errors.New("neither the list nor its items tell their kind"))
		case m.Kind == "":
			raw = withKind(raw, kind.APIVersion, kind.Kind)
			without++
		case kind.Kind == "", guessed && n == 0:
			*kind = got
		case got != *kind:
			return false, malformed("list", fmt.Errorf("an item of %v in a list of %v", got, *kind))
		}
		n++
		o, err := ParseObject(JSON, raw)
		if err == nil {
			err = f(*kind, o)
		}
		if err != nil {
			return false, err
		}
	}
	return without == 0 && (n > 0 || !guessed), expect(d, json.Delim(']'))
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return jsonError(err)
	}
	if got != want {
		return malformed("list", fmt.Errorf("%v where %v was expected", got, want))
	}
	return nil
}

func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return malformed("list", err)
}
