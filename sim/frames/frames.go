// Package frames tells what each kind of request costs at a kube-apiserver. It reads the frames of HTTP/2 and their
// lengths from the log that the apiserver writes with Debug in its environment, as net/http has them there. A frame
// counts with its head, and without what TLS adds. The log does not say which stream a header belongs to: where two
// connections begin a request at once, one of them may be named "other requests".
package frames

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/request"
)

// Debug is what a kube-apiserver has in its environment so that it logs frames.
const Debug = "GODEBUG=http2debug=2"

const (
	frameHead = 9       // bytes of a frame before its payload
	maxLine   = 1 << 20 // bytes of a line of the log
)

// Cause is what one kind of request cost.
type Cause struct {
	What     string `json:"what"` // "kubelet watch secrets, one", or "connections"
	Requests int    `json:"requests"`
	Up       int64  `json:"up"`   // bytes to the cloud
	Down     int64  `json:"down"` // and from it
}

// Of says which connections count: those of which most requests have one of Agents as the first word of their user
// agent, and on which nobody asks for anything whose name begins with one of Without.
type Of struct {
	Agents, Without []string
}

var (
	line   = regexp.MustCompile(`^[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{6}) .*?"http2: (.*)"$`)
	framed = regexp.MustCompile(`^Framer (0x[0-9a-f]+): (read|wrote) ([A-Z_]+) .*?len=(\d+)`)
	stream = regexp.MustCompile(` stream=(\d+) `)
	header = regexp.MustCompile(`^decoded hpack field header field "([^"]*)" = "(.*)"$`)
)

// conn is a connection, and asked a request on it.
type (
	conn struct {
		last uint64 // its last request
		open map[uint64]*asked
		all  []*asked
	}
	asked struct {
		headers map[string]string
	}
)

// log is what has been read.
type log struct {
	conns  []*conn
	now    map[string]*conn // by the address of what reads it, which another one may have later
	head   *asked           // whose headers come next
	frames []frame
}

type frame struct {
	conn  *conn
	asked *asked // nil: it is of the connection
	kind  string
	up    bool
	size  int64
}

// Read tells what the connections of some clients cost between two moments, what cost most first. The log has no year:
// it is of the last twelve months before to.
func Read(r io.Reader, from, to time.Time, of Of) ([]Cause, error) {
	l := log{now: map[string]*conn{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		l.take(lines.Bytes(), from, to)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("frames of kube-apiserver: %w", err)
	}
	return l.causes(of), nil
}

func (l *log) take(text []byte, from, to time.Time) {
	if !bytes.Contains(text, []byte(`"http2: `)) {
		return
	}
	m := line.FindSubmatch(text)
	if m == nil {
		return
	}
	said := strings.ReplaceAll(string(m[2]), `\"`, `"`)
	if h := header.FindStringSubmatch(said); h != nil {
		if l.head != nil {
			l.head.headers[h[1]] = h[2]
		}
		return
	}
	f := framed.FindStringSubmatch(said)
	if f == nil {
		return
	}
	now := frame{kind: f[3], up: f[2] == "read", size: frameHead}
	now.conn, now.asked = l.of(f[1], said, now.up && now.kind == "HEADERS")
	n, err := strconv.Atoi(f[4])
	if err != nil {
		return
	}
	now.size += int64(n)
	at, err := time.ParseInLocation("20060102 15:04:05.000000", strconv.Itoa(to.Year())+string(m[1]), to.Location())
	if err == nil && !at.Before(from) && !at.After(to) {
		l.frames = append(l.frames, now)
	}
}

// of is the connection of a frame, and the request; begins: it is a new one.
func (l *log) of(address, said string, begins bool) (*conn, *asked) {
	c, number := l.now[address], uint64(0)
	if n := stream.FindStringSubmatch(said); n != nil {
		number, _ = strconv.ParseUint(n[1], 10, 64) // digits; beyond uint64 there is none
	}
	if c == nil || begins && number <= c.last {
		c = &conn{open: map[uint64]*asked{}}
		l.now[address], l.conns = c, append(l.conns, c)
	}
	if begins {
		x := &asked{headers: map[string]string{}}
		c.last, c.open[number], c.all, l.head = number, x, append(c.all, x), x
	}
	return c, c.open[number]
}

// agent is the first word of the user agent.
func (a *asked) agent() string {
	name, _, _ := strings.Cut(a.headers["user-agent"], "/")
	return name
}

// counts reports whether a connection counts.
func (c *conn) counts(of Of) bool {
	mine := 0
	for _, a := range c.all {
		if slices.Contains(of.Agents, a.agent()) {
			mine++
		}
		path, err := url.QueryUnescape(a.headers[":path"])
		if err == nil && slices.ContainsFunc(of.Without, func(name string) bool {
			return strings.Contains(path, "/"+name) || strings.Contains(path, "="+name)
		}) {
			return false
		}
	}
	return 2*mine > len(c.all)
}

func (l *log) causes(of Of) []Cause {
	counted := map[*conn]bool{}
	for _, c := range l.conns {
		counted[c] = c.counts(of)
	}
	all := map[string]*Cause{}
	for _, f := range l.frames {
		if !counted[f.conn] {
			continue
		}
		what := "connections"
		if f.asked != nil {
			what = f.asked.name()
		}
		c := all[what]
		if c == nil {
			c = &Cause{What: what}
			all[what] = c
		}
		if f.up {
			c.Up += f.size
		} else {
			c.Down += f.size
		}
		if f.up && f.kind == "HEADERS" {
			c.Requests++
		}
	}
	var sorted []Cause
	for _, c := range all {
		sorted = append(sorted, *c)
	}
	slices.SortFunc(sorted, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Up+b.Down, a.Up+a.Down), cmp.Compare(a.What, b.What))
	})
	return sorted
}

// name says what is asked, of which objects.
func (a *asked) name() string {
	u, err := url.ParseRequestURI(a.headers[":path"])
	if err != nil {
		return "other requests"
	}
	r := request.Parse(&http.Request{Method: a.headers[":method"], URL: u})
	if !r.IsResource {
		return a.agent() + " " + r.Verb + " " + r.Path
	}
	what := r.Resource.Name
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	switch {
	case r.Name != "" || strings.Contains(r.FieldSelector, "metadata.name="):
		what += ", one"
	case strings.Contains(r.FieldSelector, "spec.nodeName="):
		what += ", of the node"
	case r.Namespace != "":
		what += ", of a namespace"
	}
	return a.agent() + " " + r.Verb + " " + what
}
