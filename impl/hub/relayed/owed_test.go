package relayed

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/scope"
)

// endpointsOf makes a relay of Endpoints that holds objects.
func endpointsOf(t *testing.T, version uint64, all ...*corev1.Endpoints) *relay.Relay {
	t.Helper()
	res, err := relay.ParseResource("endpoints.v1.")
	check(t, err)
	r, err := relay.New(relay.Config{Resource: res})
	check(t, err)
	var items []*wire.Object
	for _, e := range all {
		raw, err := e.Marshal()
		check(t, err)
		o, err := wire.ParseObject(wire.Protobuf, raw)
		check(t, err)
		items = append(items, o)
	}
	check(t, r.Replace(version, items))
	return r
}

func web(uid, version string) *corev1.Endpoints {
	return &corev1.Endpoints{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid), ResourceVersion: version},
	}
}

func newOwed(r *relay.Relay, c *clocktesting.FakeClock) *owed {
	return &owed{relay: r, clock: c, facts: map[string]*fact{}}
}

// TestObserve: what each form of answer tells.
func TestObserve(t *testing.T) {
	asJSON := func(v any) []byte {
		b, err := json.Marshal(v)
		check(t, err)
		return b
	}
	asProtobuf := func(kind string, m interface{ Marshal() ([]byte, error) }) []byte {
		raw, err := m.Marshal()
		check(t, err)
		return wire.Envelope(wire.Kind{APIVersion: "v1", Kind: kind}, raw)
	}
	zipped := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(b)
		check(t, z.Close())
		return out.Bytes()
	}
	now := metav1.Now()
	object := web("u", "4711")
	leaving, released := object.DeepCopy(), object.DeepCopy()
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"example.com/f"}
	released.DeletionTimestamp = &now
	metadata := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: object.ObjectMeta,
	}
	scale := metadata.DeepCopy()
	scale.Kind = "Scale"
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success",
		Details: &metav1.StatusDetails{Name: "web", UID: "u"},
	}
	taken := status.DeepCopy()
	taken.Details.UID = ""
	list := &corev1.EndpointsList{
		TypeMeta: metav1.TypeMeta{
			APIVersion: "v1", Kind: "EndpointsList",
		}, ListMeta: metav1.ListMeta{ResourceVersion: "4711"}, Items: []corev1.Endpoints{*object},
	}
	ending := list.DeepCopy()
	ending.Items[0] = *leaving
	many := list.DeepCopy()
	for i := range maxFacts {
		e := object.DeepCopy()
		e.Name = fmt.Sprint("web-", i)
		many.Items = append(many.Items, *e)
	}
	const one, all = "/api/v1/namespaces/default/endpoints/web", "/api/v1/namespaces/default/endpoints"
	const known, gone, emptied, ask, askAll, nothing = "4711", "gone u", "gone or leaving u", "ask default/web", "ask", ""
	tests := []struct {
		name, method, path string
		code               int
		media, encoding    string
		body               []byte
		want               string
	}{
		{"json", "PUT", one, 200, "application/json", "", asJSON(object), known},
		{"json with a charset", "PATCH", one, 200, "application/json; charset=utf-8", "", asJSON(object), known},
		{"protobuf", "POST", all, 201, runtime.ContentTypeProtobuf, "", asProtobuf("Endpoints", object), known},
		{
			"protobuf, gzip", "PUT", one, 200, runtime.ContentTypeProtobuf, "gzip", zipped(asProtobuf("Endpoints", object)),
			known,
		},
		{"metadata", "PATCH", one + "/status", 200, "application/json", "", asJSON(metadata), known},
		{"a deletion that has begun", "DELETE", one, 202, "application/json", "", asJSON(leaving), known},
		{"the last finalizer", "PATCH", one, 200, "application/json", "", asJSON(released), known + " " + ask},
		{"a dry run", "PUT", one + "?dryRun=All", 200, "application/json", "", asJSON(object), nothing},
		{"a deletion", "DELETE", one, 200, "application/json", "", asJSON(status), gone},
		{"a deletion, protobuf", "DELETE", one, 200, runtime.ContentTypeProtobuf, "", asProtobuf("Status", status), gone},
		{"a deletion that tells no UID", "DELETE", one, 200, "application/json", "", asJSON(taken), ask},
		{"an eviction", "POST", one + "/eviction", 201, "application/json", "", asJSON(status), ask},
		{"a scale", "PUT", one + "/scale", 200, "application/json", "", asJSON(scale), ask},
		{"a deletion of all", "DELETE", all, 200, "application/json", "", asJSON(list), emptied},
		{
			"a deletion of all, protobuf", "DELETE", all, 200, runtime.ContentTypeProtobuf, "",
			asProtobuf("EndpointsList", list), emptied,
		},
		{"a deletion of what was leaving", "DELETE", all, 200, "application/json", "", asJSON(ending), ask},
		{"a deletion of many", "DELETE", all, 200, "application/json", "", asJSON(many), askAll},
		{"a deletion of all that tells nothing", "DELETE", all, 200, "application/json", "", asJSON(taken), askAll},
		{"a conflict", "PUT", one, 409, "application/json", "", asJSON(taken), ask},
		{"a name that is taken", "POST", all, 409, "application/json", "", asJSON(taken), ask},
		{"what is not there", "PATCH", one, 404, "application/json", "", asJSON(taken), ask},
		{"no namespace", "POST", all, 404, "application/json", "", asJSON(taken), nothing},
		{"a failure", "PUT", one, 500, "application/json", "", asJSON(taken), ask},
		{"a failure of a creation", "POST", all, 504, "application/json", "", asJSON(taken), askAll},
		{"denied", "PUT", one, 403, "application/json", "", asJSON(taken), nothing},
		{"invalid", "PUT", one, 422, "application/json", "", asJSON(taken), nothing},
		{"broken json", "PUT", one, 200, "application/json", "", []byte("{"), ask},
		{"broken protobuf", "PUT", one, 200, runtime.ContentTypeProtobuf, "", asProtobuf("Endpoints", object)[:20], ask},
		{"broken gzip", "PUT", one, 200, "application/json", "gzip", []byte("{}"), ask},
		{"yaml", "PUT", one, 200, "application/yaml", "", []byte("kind: Endpoints"), ask},
		{"too much", "PUT", one, 200, "application/json", "", bytes.Repeat([]byte(" "), maxWritten+1), ask},
		{"nothing", "PUT", one, 204, "", "", nil, ask},
	}
	for _, test := range tests {
		r := endpointsOf(t, 100)
		clock := clocktesting.NewFakeClock(time.Now())
		o := newOwed(r, clock)
		c := &Consistency{held: map[*relay.Relay]*held{r: {relay: r, owed: o}}}
		req, err := http.NewRequestWithContext(t.Context(), test.method, "https://hub"+test.path, nil)
		check(t, err)
		h := http.Header{"Content-Type": {test.media}}
		if test.encoding != "" {
			h.Set("Content-Encoding", test.encoding)
		}
		resp := &http.Response{StatusCode: test.code, Header: h, Body: io.NopCloser(bytes.NewReader(test.body)), Request: req}
		check(t, c.Observe(Router(scope.NewSet(r).All).Route(request.Parse(req)), resp))
		if body, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(body, test.body) {
			t.Errorf("%s: the writer gets %d bytes of %d, %v", test.name, len(body), len(test.body), err)
		}
		if got := o.String(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// String is what is owed.
func (o *owed) String() (s string) {
	if o.newest > 0 {
		s = fmt.Sprint(o.newest)
	}
	for _, f := range o.facts {
		if s != "" {
			s += " "
		}
		switch {
		case f.unknown:
			s += "ask " + f.key
		case f.leaves:
			s += "gone or leaving " + f.uid
		default:
			s += "gone " + f.uid
		}
	}
	if o.doubts > o.solved {
		s += "ask"
	}
	return s
}

// TestReached: a read shows no version before that of the last write through this hub, for a minute.
func TestReached(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Now())
	o := newOwed(endpointsOf(t, 10, web("u", "5")), c)
	list := &Target{Request: &request.Request{Verb: "list"}}
	if o.reach(10); !o.shown(list) {
		t.Error("a write at 10 is not shown by a relay that has reached 10")
	}
	o.reach(11)
	if o.shown(list) {
		t.Error("a write at 11 is shown by a relay that has reached 10")
	}
	c.Step(writtenAge + 1)
	if !o.shown(list) {
		t.Error("a write is waited for for more than a minute")
	}
}

// TestFacts: when a relay shows what is known of an object.
func TestFacts(t *testing.T) {
	now := metav1.Now()
	leaving := web("u", "5")
	leaving.DeletionTimestamp = &now
	for name, c := range map[string]struct {
		fact  fact
		has   *corev1.Endpoints
		shown bool
	}{
		"deleted, and not there":          {fact{uid: "u"}, nil, true},
		"deleted, and there":              {fact{uid: "u"}, web("u", "5"), false},
		"deleted, and leaving":            {fact{uid: "u"}, leaving, false},
		"deleted, and created again":      {fact{uid: "u"}, web("v", "7"), true},
		"deleted with others, leaving":    {fact{uid: "u", leaves: true}, leaving, true},
		"deleted with others, and there":  {fact{uid: "u", leaves: true}, web("u", "5"), false},
		"asked, and of before":            {fact{version: 6, reached: 20}, web("u", "5"), false},
		"asked, and that":                 {fact{version: 6, reached: 20}, web("u", "6"), true},
		"asked, and later":                {fact{version: 6, reached: 20}, web("u", "7"), true},
		"asked, and not there yet":        {fact{version: 6, reached: 20}, nil, false},
		"asked, and gone since":           {fact{version: 6, reached: 10}, nil, true},
		"asked, gone, and there":          {fact{reached: 20}, web("u", "5"), false},
		"asked, gone, and not there":      {fact{reached: 20}, nil, true},
		"asked, gone, and made again":     {fact{reached: 9}, web("v", "10"), true},
		"asked, gone, and reached anyway": {fact{reached: 10}, web("u", "5"), true},
	} {
		var all []*corev1.Endpoints
		if c.has != nil {
			all = append(all, c.has)
		}
		c.fact.key = "default/web"
		r := endpointsOf(t, 10, all...)
		if got := c.fact.shown(r.Status().Version, r); got != c.shown {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOwedIsBounded: what is remembered is forgotten after a minute, and is never more than so many facts.
func TestOwedIsBounded(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	o := newOwed(endpointsOf(t, 4), clock)
	get := &Target{Request: &request.Request{Verb: "get", Namespace: "default", Name: "web"}}
	for i, step := range []struct {
		wait    time.Duration
		version uint64
		shown   bool
	}{
		{0, 10, false}, {0, 3, false}, {time.Second, 0, false}, {time.Minute, 0, true}, {0, 5, false},
		{writtenAge + 1, 0, true}, {0, 4, true},
	} {
		clock.Step(step.wait)
		if step.version > 0 {
			o.reach(step.version)
		}
		if got := o.shown(get); got != step.shown {
			t.Errorf("step %d: %t", i, got)
		}
	}
	o.doubt("default/web")
	o.doubt("")
	if facts, doubt := o.unknown(get); len(facts) != 1 || !doubt {
		t.Errorf("%d facts, %t", len(facts), doubt)
	}
	other := &Target{Request: &request.Request{Verb: "get", Namespace: "default", Name: "other"}}
	if facts, _ := o.unknown(other); len(facts) != 0 {
		t.Error("a read of another object asks for this one")
	}
	clock.Step(writtenAge + 1)
	if facts, doubt := o.unknown(get); len(facts) != 0 || doubt {
		t.Errorf("after a minute: %d facts, %t", len(facts), doubt)
	}
	for i := range 3 * maxFacts {
		o.doubt(fmt.Sprint("default/web-", i))
		if len(o.facts) > maxFacts {
			t.Fatalf("%d facts", len(o.facts))
		}
	}
	if _, doubt := o.unknown(other); !doubt {
		t.Error("facts were dropped, and nobody asks")
	}
}
