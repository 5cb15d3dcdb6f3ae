package wire

import (
	"errors"
	"fmt"
	"io"
)

// MaxObject bounds one object, list item or watch frame in bytes. kube-apiserver refuses request bodies
// above 3 MiB and etcd above 1.5 MiB, so anything near this is not an object.
const MaxObject = 32 << 20

// cappedReader fails once a single value needs more than MaxObject bytes.
type cappedReader struct {
	r    io.Reader
	used int
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.used > MaxObject {
		return 0, malformed("watch frame", fmt.Errorf("longer than %d bytes", MaxObject))
	}
	n, err := c.r.Read(p)
	c.used += n
	return n, err
}

// appendFrom appends n bytes of r to a copy of head. It grows with what arrives, so that a broken length costs no
// memory.
func appendFrom(head []byte, r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	all := append(make([]byte, 0, len(head)+min(n, step)), head...)
	for n > 0 {
		have, more := len(all), min(n, step)
		if cap(all)-have >= more {
			all = all[:have+more]
		} else {
			all = append(all, make([]byte, more)...)
		}
		if _, err := io.ReadFull(r, all[have:]); err != nil {
			return nil, noEOF(err)
		}
		n -= more
	}
	return all, nil
}

// noEOF is for a stream that ends where it must not.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
