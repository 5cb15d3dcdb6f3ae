package queue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/weir-edge/weir/impl/disk"
)

const (
	fileName  = "queue.log"
	tempName  = fileName + ".tmp"
	badName   = fileName + ".bad"
	family    = "weirqueue" // begins the file of any version
	magic     = "weirqueue1\n"
	sealed    = "weirqueue2\n" // with records that are encrypted
	mark      = "\xf7WQ\x0a"
	frameHead = len(mark) + 4 + 4
	maxRecord = 8 << 20
	// leastGarbage is how much of the file must be of no use any more before it is rewritten.
	leastGarbage = 256 << 10
)

// format is how a file is written: in the clear, or encrypted.
type format struct{ key *disk.Key }

func (f format) magic() string {
	if f.key != nil {
		return sealed
	}
	return magic
}

// appendFrame frames a record: mark, length, checksum of length and record, record. No frame depends on the one before
// it, so that behind a damaged one the next is found by its mark.
func (f format) appendFrame(dst []byte, r *record) []byte {
	b := r.encode()
	if f.key != nil {
		b = f.key.Seal(b, []byte(sealed))
	}
	start := len(dst)
	dst = append(dst, mark...)
	dst = append(dst, make([]byte, 8)...)
	dst = append(dst, b...)
	frame := dst[start:]
	binary.LittleEndian.PutUint32(frame[len(mark):], uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[len(mark)+4:], disk.Checksum(frame[len(mark):len(mark)+4], frame[frameHead:]))
	return dst
}

// frameAt gives the record of the frame that b begins with; n is the size of the frame, 0 if there is no whole one.
func frameAt(b []byte) (record []byte, n int) {
	if len(b) < frameHead || string(b[:len(mark)]) != mark {
		return nil, 0
	}
	size := binary.LittleEndian.Uint32(b[len(mark):])
	if size > maxRecord || int(size) > len(b)-frameHead {
		return nil, 0
	}
	n = frameHead + int(size)
	if disk.Checksum(b[len(mark):len(mark)+4], b[frameHead:n]) != binary.LittleEndian.Uint32(b[len(mark)+4:]) {
		return nil, 0
	}
	return b[frameHead:n], n
}

// contents are what a file was found to have.
type contents struct {
	end int // behind the last whole frame; what stands behind it was cut off by a power cut
	// damaged bytes before that, and those that cannot be read: the key is not here, or a later version of Weir wrote
	// them.
	bad    int
	sealed bool // the file says that its records are encrypted
	later  bool // it says that another version of Weir wrote it, and no record can be read
}

// read gives the records of a file to f, in order.
func (f format) read(b []byte, take func(*record)) (c contents) {
	c.sealed = bytes.HasPrefix(b, []byte(sealed))
	known := c.sealed || bytes.HasPrefix(b, []byte(magic))
	c.later = !known && bytes.HasPrefix(b, []byte(family))
	if known {
		c.end = len(magic)
	}
	for at := c.end; at < len(b); {
		body, n := frameAt(b[at:])
		if n == 0 {
			next := bytes.Index(b[at+1:], []byte(mark))
			if next < 0 {
				break
			}
			at += 1 + next
			continue
		}
		c.bad += at - c.end
		at += n
		c.end = at
		if r, err := f.parse(body, c.sealed); err == nil {
			take(r)
			c.later = false
		} else {
			c.bad += n
		}
	}
	if len(b) > 0 && !known { // another format, or its head is damaged
		c.bad = max(c.bad, len(magic))
	}
	return c
}

func (f format) parse(body []byte, sealedFile bool) (*record, error) {
	if sealedFile || f.key.Fits(body) {
		raw, err := f.key.Open(body, []byte(sealed))
		if err != nil {
			return nil, err
		}
		body = raw
	}
	return parseRecord(body)
}

// journal is the file.
type journal struct {
	format
	disk disk.Disk
	file disk.File // nil: the next write makes a new file
	size int64     // of what is good in it
}

// openJournal reads the file, if there is one, and tells what was wrong with it.
func openJournal(d disk.Disk, key *disk.Key, f func(*record)) (j *journal, found contents, torn int, err error) {
	_ = d.Remove(tempName) // of a process that was killed
	j = &journal{format: format{key}, disk: d}
	file, err := d.Open(fileName)
	if errors.Is(err, fs.ErrNotExist) {
		return j, found, 0, nil
	}
	if err != nil {
		return nil, found, 0, err
	}
	b, err := io.ReadAll(file)
	if err != nil {
		return nil, found, 0, errors.Join(err, file.Close())
	}
	found = j.read(b, f)
	torn = len(b) - found.end
	if found.end < len(magic) || found.bad > 0 || found.sealed != (key != nil) { // rewritten by the caller
		if found.bad > 0 && (found.sealed || found.later || key == nil) { // else the copy might be in the clear
			keepBad(d, b)
		}
		return j, found, torn, file.Close()
	}
	// Sync: a process that was killed may not have come to it, and what was read counts from now on.
	if err := errors.Join(file.Cut(int64(found.end)), file.Sync()); err != nil {
		return j, found, torn, file.Close()
	}
	j.file, j.size = file, int64(found.end)
	return j, found, torn, nil
}

// keepBad keeps a copy of a damaged file for anyone who wants to look at it. The next one takes its place. If the disk
// is full, there is none: the copy is not worth the queue.
func keepBad(d disk.Disk, b []byte) {
	f, err := d.Create(badName)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		_ = d.Remove(badName)
	}
}

func (j *journal) close() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}

// append writes frames and, if sync is set, makes them and all before them durable. After an error the file is as it
// was, or it is left and the next write makes a new one.
func (j *journal) append(frames []byte, sync bool) error {
	if j.file == nil {
		return errNoFile
	}
	if _, err := j.file.Write(frames); err != nil {
		if j.file.Cut(j.size) != nil {
			j.close()
		}
		return fmt.Errorf("write to the queue: %w", err)
	}
	if sync {
		if err := j.file.Sync(); err != nil { // what is on the disk now, nobody knows, and a later Sync would not tell
			_ = j.file.Cut(j.size)
			j.close()
			return fmt.Errorf("write to the queue: %w", err)
		}
	}
	j.size += int64(len(frames))
	return nil
}

var errNoFile = errors.New("the queue has no file")

// rewrite makes a new file with these frames, durably, in place of the old one.
func (j *journal) rewrite(frames []byte) error {
	f, err := j.disk.Create(tempName)
	if err != nil {
		return fmt.Errorf("rewrite the queue: %w", err)
	}
	b := append([]byte(j.magic()), frames...)
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("rewrite the queue: %w", errors.Join(err, f.Close(), j.disk.Remove(tempName)))
	}
	err = j.disk.Rename(tempName, fileName)
	j.close() // also if that failed: which file has the name now, nobody knows
	if err != nil {
		return fmt.Errorf("rewrite the queue: %w", errors.Join(err, f.Close()))
	}
	j.file, j.size = f, int64(len(b))
	return nil
}

// wasteful reports whether the file should be rewritten.
func (j *journal) wasteful(live int64) bool { return j.size-live > max(live, leastGarbage) }
