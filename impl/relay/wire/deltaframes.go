package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// DeltaMedia is the form's media type, in Accept and Content-Type.
const DeltaMedia = "application/vnd.weir.delta"

// kind says what is in a frame.
type kind byte

const (
	changed kind = 'c'
	deleted kind = 'd'
	whole   kind = 'w'
	plain   kind = 'p'
	mark    kind = 'b'
	same    kind = 's'
)

// DeltaSince is the parameter of Media by which a reader of a list says up to which version it has all.
const DeltaSince = "since"

// What a mark says beside its version, as bits.
const (
	saysEnd = 1 << iota
	saysBatch
	saysAdmits
	saysTestimony // the rest of the frame
)

// small is the size of an event up to which it is not worth compressing.
const small = 200

// AppendDeltaChange appends what an event of type MODIFIED or DELETED makes of an object. Both are immutable.
func AppendDeltaChange(dst []byte, typ string, before, now *Object) ([]byte, error) {
	k := changed
	switch typ {
	case Modified:
	case Deleted:
		k = deleted
	default:
		return nil, fmt.Errorf("%s of %s is no difference", typ, now.Key)
	}
	body := binary.AppendUvarint(nil, before.Version)
	body, err := appendDiff(body, before.Raw, now.Raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", now.Key, err)
	}
	return appendFrame(dst, k, body), nil
}

// AppendDeltaEvents appends events in their ordinary form, as one frame.
func AppendDeltaEvents(dst []byte, events ...[]byte) []byte {
	if len(events) == 1 && len(events[0]) <= small {
		return appendFrame(dst, plain, events[0])
	}
	var text []byte
	for _, ev := range events {
		text = append(binary.AppendUvarint(text, uint64(len(ev))), ev...)
	}
	return appendFrame(dst, whole, appendWhole(nil, text))
}

// nameSize is how many bytes name an object in a version. Among a hundred thousand that a reader has, one that is gone
// is taken for another one once in three billion times.
const nameSize = 6

// AppendDeltaName appends what names an object in a version.
func AppendDeltaName(dst []byte, o *Object) []byte {
	sum := xxhash.Sum64String(o.Key + "/" + o.UID + "/" + FormatVersion(o.Version))
	return append(dst, binary.LittleEndian.AppendUint64(nil, sum)[:nameSize]...)
}

// AppendDeltaSame appends objects that the reader has, by their names in a row.
func AppendDeltaSame(dst, names []byte) []byte { return appendFrame(dst, same, names) }

// AppendDeltaBookmark appends a bookmark.
func AppendDeltaBookmark(dst []byte, ev *Event) []byte {
	says := byte(0)
	body := append(binary.AppendUvarint(nil, ev.Version), 0)
	at := len(body) - 1
	if ev.InitialEnd {
		says |= saysEnd
	}
	if ev.BatchTo != 0 {
		says |= saysBatch
		body = binary.AppendUvarint(body, ev.BatchTo)
	}
	if ev.BatchAdmits != 0 {
		says |= saysAdmits
		body = binary.AppendUvarint(body, ev.BatchAdmits)
	}
	if ev.Testimony != "" {
		says |= saysTestimony
		body = append(body, ev.Testimony...)
	}
	body[at] = says
	return appendFrame(dst, mark, body)
}

func appendFrame(dst []byte, k kind, body []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(body)+1))
	return append(append(dst, byte(k)), body...)
}
