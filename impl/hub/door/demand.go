package door

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/request"
)

// Demand is what clients of this node read of the whole cluster. It is safe for concurrent use.
type Demand struct {
	node  string
	clock clock.PassiveClock
	began time.Time

	mu     sync.Mutex
	passed tally
	shared attention
}

// NewDemand makes one that has seen nothing.
func NewDemand(node string, c clock.PassiveClock) *Demand {
	return &Demand{node: node, clock: c, began: c.Now(), passed: newTally(), shared: attention{}}
}

func (d *Demand) now() time.Duration { return d.clock.Since(d.began) }

// Passed has the bytes of an answer of the cloud counted, if it answers a read of the whole cluster.
func (d *Demand) Passed(asked *request.Request, resp *http.Response) {
	if resp.StatusCode != http.StatusOK || !ofCluster(asked, d.node) {
		return
	}
	name := asked.Resource.String()
	if _, _, _, err := digest.Split(name); err != nil || digest.Private(asked.Resource.Name, asked.Resource.Group) {
		name = ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	resp.Body = &countedBody{ReadCloser: resp.Body, of: d, use: d.passed.begin(d.now(), name)}
}

// body is that of an answer, which counts what is read of it.
type countedBody struct {
	io.ReadCloser
	of   *Demand
	use  *use
	once sync.Once
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.of.mu.Lock()
		b.use.add(b.of.now(), int64(n))
		b.of.mu.Unlock()
	}
	return n, err
}

// Close implements io.Closer.
func (b *countedBody) Close() error {
	b.once.Do(func() {
		b.of.mu.Lock()
		b.use.open--
		b.of.mu.Unlock()
	})
	return b.ReadCloser.Close()
}

// Relayed notes that a client reads a shared resource, until done is called.
func (d *Demand) Relayed(resource string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.shared.of(d.now(), resource)
	s.open++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		s.open--
		s.last = d.now()
	}
}

// Open are the resources that clients read from the cloud now.
func (d *Demand) Open() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed.open()
}

// Reads is what there is to tell now. shared are the resources that the pool shares.
func (d *Demand) Reads(shared []string) (r digest.Reads) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	r.Unread = d.shared.unread(now, shared)
	r.Passed, r.Rest = d.passed.told(now, shared)
	r.Order()
	return r
}

// ofCluster reports whether a request is a list or watch of the whole cluster, as a relay could answer it. One whose
// selectors ask for one object, one value of a field, or something of this node takes a share of its own, which
// nobody else would read.
func ofCluster(asked *request.Request, node string) bool {
	if !asked.Reads() || asked.Verb == "get" || asked.Namespace != "" || asked.Subresource != "" || asked.Odd ||
		asked.Upgrade || strings.HasSuffix(asked.Path, "/") {
		return false
	}
	if asked.FieldSelector == "" && asked.LabelSelector == "" {
		return true
	}
	o, err := asked.Options()
	return err == nil && !narrow(o.FieldSelector) && !ofNode(o.LabelSelector, node)
}

// joinable reports whether a request makes the pool share what it reads: a watch of the whole cluster, or the list of
// any version that comes before one. A client that lists the newest state reads it once.
func joinable(asked *request.Request, node string) bool {
	return (asked.Verb == "watch" || asked.Query.Get("resourceVersion") == "0") && ofCluster(asked, node)
}

func narrow(s fields.Selector) bool {
	if s == nil {
		return false
	}
	for _, q := range s.Requirements() {
		if q.Operator != selection.NotEquals {
			return true
		}
	}
	return false
}

func ofNode(s labels.Selector, node string) bool {
	if s == nil {
		return false
	}
	all, _ := s.Requirements()
	for _, q := range all {
		switch q.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if q.Values().Has(node) {
				return true
			}
		default:
		}
	}
	return false
}
