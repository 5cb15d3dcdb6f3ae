package queue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pack"
)

const (
	fileName  = "queue.log"
	tempName  = fileName + ".tmp"
	badName   = fileName + ".bad"
	magic     = "weirqueue1\n"
	mark      = "\xf7WQ\x0a"
	frameHead = len(mark) + 4 + 4
	maxRecord = 8 << 20
	// leastGarbage is how much of the file must be of no use any more before it is written anew.
	leastGarbage = 256 << 10
)

// appendFrame frames a record: mark, length, checksum of length and record, record. No frame depends on the one before
// it, so that behind a damaged one the next is found by its mark.
func appendFrame(dst []byte, r *record) []byte {
	start := len(dst)
	dst = append(dst, mark...)
	dst = append(dst, make([]byte, 8)...)
	dst = r.append(dst)
	frame := dst[start:]
	binary.LittleEndian.PutUint32(frame[len(mark):], uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[len(mark)+4:], pack.Checksum(frame[len(mark):len(mark)+4], frame[frameHead:]))
	return dst
}

// frameAt reads the frame that b begins with; n is its size, 0 if there is no whole one.
func frameAt(b []byte) (r *record, n int) {
	if len(b) < frameHead || string(b[:len(mark)]) != mark {
		return nil, 0
	}
	size := binary.LittleEndian.Uint32(b[len(mark):])
	if size > maxRecord || int(size) > len(b)-frameHead {
		return nil, 0
	}
	n = frameHead + int(size)
	if pack.Checksum(b[len(mark):len(mark)+4], b[frameHead:n]) != binary.LittleEndian.Uint32(b[len(mark)+4:]) {
		return nil, 0
	}
	r, err := parseRecord(b[frameHead:n])
	if err != nil { // the checksum is right: a later version of Weir wrote it
		return nil, 0
	}
	return r, n
}

// readLog gives the records of a file to f, in order. end is behind the last whole one; bad counts damaged bytes before it.
// What stands behind end was cut off by a power cut.
func readLog(b []byte, f func(*record)) (end, bad int) {
	if bytes.HasPrefix(b, []byte(magic)) {
		end = len(magic)
	}
	for at := end; at < len(b); {
		r, n := frameAt(b[at:])
		if n == 0 {
			next := bytes.Index(b[at+1:], []byte(mark))
			if next < 0 {
				break
			}
			at += 1 + next
			continue
		}
		f(r)
		bad += at - end
		at += n
		end = at
	}
	return end, bad
}

// journal is the file.
type journal struct {
	disk disk.Disk
	file disk.File // nil: the next write makes a new file
	size int64     // of what is good in it
}

// openJournal reads the file, if there is one, and tells what was wrong with it.
func openJournal(d disk.Disk, f func(*record)) (j *journal, bad, torn int, err error) {
	_ = d.Remove(tempName) // of a process that was killed
	j = &journal{disk: d}
	file, err := d.Open(fileName)
	if errors.Is(err, fs.ErrNotExist) {
		return j, 0, 0, nil
	}
	if err != nil {
		return nil, 0, 0, err
	}
	b, err := io.ReadAll(file)
	if err != nil {
		return nil, 0, 0, errors.Join(err, file.Close())
	}
	end, bad := readLog(b, f)
	if len(b) > 0 && !bytes.HasPrefix(b, []byte(magic)) { // another format, or its head is damaged
		bad = max(bad, len(magic))
	}
	torn = len(b) - end
	if end < len(magic) || bad > 0 { // written anew by the caller
		if bad > 0 {
			keepBad(d, b)
		}
		return j, bad, torn, file.Close()
	}
	// Sync: a process that was killed may not have come to it, and what was read counts from now on.
	if err := errors.Join(file.Cut(int64(end)), file.Sync()); err != nil {
		return j, bad, torn, file.Close()
	}
	j.file, j.size = file, int64(end)
	return j, bad, torn, nil
}

// keepBad keeps a copy of a damaged file for whoever wants to look at it. The next one takes its place. If the disk is full,
// there is none: the copy is not worth the queue.
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

// append writes frames and, if sync is set, makes them and all before them durable. After an error the file is as it was, or it
// is left and the next write makes a new one.
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
		return fmt.Errorf("write the queue anew: %w", err)
	}
	b := append([]byte(magic), frames...)
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the queue anew: %w", errors.Join(err, f.Close(), j.disk.Remove(tempName)))
	}
	err = j.disk.Rename(tempName, fileName)
	j.close() // also if that failed: which file has the name now, nobody knows
	if err != nil {
		return fmt.Errorf("write the queue anew: %w", errors.Join(err, f.Close()))
	}
	j.file, j.size = f, int64(len(b))
	return nil
}

// wasteful tells whether the file should be written anew.
func (j *journal) wasteful(live int64) bool { return j.size-live > max(live, leastGarbage) }
