package filter

import (
	"compress/gzip"
	"io"
)

// inflater gives a stream what comes compressed. It has a goroutine until it is closed.
type inflater struct {
	*io.PipeWriter
	done chan struct{}
}

func newInflater(s *stream) *inflater {
	r, w := io.Pipe()
	i := &inflater{w, make(chan struct{})}
	go func() {
		defer close(i.done)
		_ = r.CloseWithError(inflate(r, s))
	}()
	return i
}

func inflate(r io.Reader, s *stream) error {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := plain.Read(buf)
		if n > 0 {
			if _, err := s.write(buf[:n]); err != nil {
				return err
			}
			s.flush()
		}
		if err != nil {
			return err
		}
	}
}

// close waits until all that came has been passed on.
func (i *inflater) close() {
	_ = i.Close()
	<-i.done
}
