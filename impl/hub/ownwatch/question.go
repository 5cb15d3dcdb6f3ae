package ownwatch

import (
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// lasts is the timeoutSeconds of streams, and most that a client is given. kube-apiserver has no upper bound.
const lasts = 24 * time.Hour

// question is a watch that may be answered from a stream.
type question struct {
	req   *http.Request
	asked *request.Request
	key   string    // what it has in common with others that one stream answers
	from  uint64    // the version that it goes on at, of one that does
	until time.Time // its client's time; zero: it has given none
}

// fields are the selectors of what is a node's own.
var fields = map[string]string{"/api/v1/pods": "spec.nodeName", "/api/v1/nodes": "metadata.name"}

// questionOf is what a request asks for of a node's own; nil: it passes as it is.
func questionOf(req *http.Request, asked *request.Request, node string, now time.Time) *question {
	field, accept := fields[req.URL.Path], strings.Join(req.Header.Values("Accept"), ",")
	if field == "" || req.Method != http.MethodGet || strings.Contains(accept, ";") || access.Impersonates(req.Header) ||
		uplink.HasToken(req.Header) || uplink.IsLapsed(req.Context()) {
		return nil
	}
	q := &question{req: req, asked: asked}
	if q.asked.Verb != "watch" || q.asked.Odd || q.asked.Upgrade || q.asked.Only(field) != node ||
		!q.asked.IsTrue("allowWatchBookmarks") || !q.asked.IsTrue("sendInitialEvents") && !q.asked.GoesOn() {
		return nil
	}
	if o, err := q.asked.Options(); err != nil {
		return nil
	} else if n := o.TimeoutSeconds; n != nil && *n > 0 {
		q.until = now.Add(time.Duration(min(*n, int64(lasts/time.Second))) * time.Second)
	}
	if !q.asked.IsTrue("sendInitialEvents") {
		q.from, _ = wire.ParseVersion(q.asked.Query.Get("resourceVersion"))
	}
	q.key = strings.Join([]string{req.URL.Path, q.fixed().Encode(), accept, req.UserAgent()}, "\n")
	return q
}

// fixed is the part of a query that is the same in each watch of a client.
func (q *question) fixed() url.Values {
	query := maps.Clone(q.asked.Query)
	for _, name := range []string{"resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds"} {
		query.Del(name)
	}
	return query
}

// encodingOf is that of the frames of a watch; ok is false of an answer that is none.
func encodingOf(resp *http.Response) (enc wire.Encoding, ok bool) {
	packed := resp.Header.Get("Content-Encoding")
	if resp.StatusCode != http.StatusOK || resp.ContentLength >= 0 || packed != "" && packed != "gzip" {
		return enc, false
	}
	switch media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media {
	case runtime.ContentTypeProtobuf:
		return wire.Protobuf, true
	case runtime.ContentTypeJSON:
		return wire.JSON, true
	}
	return enc, false
}

// closing is the body of an answer that is no stream.
type closing struct {
	io.ReadCloser
	over func()
}

// Close implements io.Closer.
func (c *closing) Close() error {
	defer c.over()
	return c.ReadCloser.Close()
}
