package answer

import (
	"net/http"
	"sync/atomic"

	"k8s.io/utils/clock"
)

// Recorder notes what was answered, and since when a write is under way.
type Recorder struct {
	http.ResponseWriter
	clock   clock.PassiveClock
	served  *Served
	counted *atomic.Int64 // what served has of by
	by      string
	Route   string
	Code    int
	writing atomic.Int64 // ns; 0: none is
	rest    bool         // what was written last may not have been sent
}

func (r *Recorder) begin() { r.writing.Store(r.clock.Now().UnixNano()) }

func (r *Recorder) end() { r.writing.Store(0) }

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(code int) {
	if r.Code < 200 {
		r.Code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *Recorder) Write(p []byte) (int, error) {
	if r.Code < 200 {
		r.Code = http.StatusOK
	}
	r.rest = true
	r.begin()
	defer r.end()
	n, err := r.ResponseWriter.Write(p)
	by := r.Route
	if r.Code >= http.StatusBadRequest {
		by = byError
	}
	if r.counted == nil || r.by != by {
		r.by, r.counted = by, r.served.by(by)
	}
	r.counted.Add(int64(n))
	return n, err
}

// Flush implements http.Flusher.
func (r *Recorder) Flush() {
	r.rest = false
	r.begin()
	defer r.end()
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// Finish sends the rest of an answer over HTTP/2. Else the server would do so when nobody looks any more whether the
// client takes it.
func (r *Recorder) Finish(req *http.Request) {
	if r.rest && req.ProtoMajor == 2 {
		r.Flush()
	}
}

// Unwrap lets http.ResponseController flush, hijack and set deadlines.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
