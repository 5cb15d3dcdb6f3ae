package images

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
)

// blobType is the type of every blob: a store does not know another one.
const blobType = "application/octet-stream"

// refuse answers with an error as the OCI distribution specification has it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"errors": []map[string]string{{"code": code, "message": message}},
	})
}

// counted counts the bytes of an answer. It keeps the way of a file to a socket that does not pass through memory.
type counted struct {
	http.ResponseWriter
	count prometheus.Counter
	ctx   context.Context // of the request: it ends when the certificate of the caller does
}

// prompt sends the head of an answer at once: its bytes may be long in coming, and containerd waits 30 s for a head.
type prompt struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (p prompt) WriteHeader(code int) {
	p.ResponseWriter.WriteHeader(code)
	_ = http.NewResponseController(p.ResponseWriter).Flush()
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.ResponseWriter.Write(p)
	c.count.Add(float64(n))
	return n, err
}

// ReadFrom implements io.ReaderFrom.
func (c *counted) ReadFrom(from io.Reader) (n int64, err error) {
	if to, ok := c.ResponseWriter.(io.ReaderFrom); ok {
		n, err = to.ReadFrom(from)
		c.count.Add(float64(n))
		return n, err
	}
	return io.Copy(struct{ io.Writer }{c}, from)
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// ranges are those that are served: one, which begins somewhere. containerd asks for no others.
var ranges = regexp.MustCompile(`^bytes=[0-9]{1,15}-([0-9]{1,15})?$`)

// checkRange refuses a header that asks for several ranges: each would be an answer in the answer.
func checkRange(header string) error {
	if header != "" && !ranges.MatchString(header) {
		return fmt.Errorf("header Range %.80q: want one range of bytes, as bytes=100- or bytes=100-199", header)
	}
	return nil
}
