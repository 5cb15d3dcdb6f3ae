package hop

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
)

// gzipBody decompresses a body. kube-apiserver writes a gzip member per flush of a stream: what a member holds is
// handed on before the next one is waited for, which may be long in coming.
type gzipBody struct {
	body io.ReadCloser
	in   *bufio.Reader
	z    *gzip.Reader
	open bool // inside a member
}

func newGzipBody(body io.ReadCloser) *gzipBody {
	return &gzipBody{body: body, in: bufio.NewReader(body), z: new(gzip.Reader)}
}

func (b *gzipBody) Read(p []byte) (int, error) {
	for {
		if !b.open {
			if err := b.z.Reset(b.in); err != nil {
				return 0, err
			}
			b.z.Multistream(false)
			b.open = true
		}
		n, err := b.z.Read(p)
		if errors.Is(err, io.EOF) {
			b.open, err = false, nil
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (b *gzipBody) Close() error { return b.body.Close() }
