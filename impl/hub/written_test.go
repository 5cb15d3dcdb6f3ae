package hub

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestReadYourWrites: what was written through a hub is read there at once, each time.
func TestReadYourWrites(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	client := b.client(nil)
	eventually(t, "the relay to be fed", func() bool {
		resp, _ := get(t, client, b.url()+"/api/v1/endpoints", alice...)
		return resp.StatusCode == http.StatusOK
	})
	for i := range 50 {
		_, body := do(t, client, http.MethodPut, b.url()+"/api/v1/namespaces/default/endpoints/web", []byte("{}"), alice...)
		var written corev1.Endpoints
		check(t, json.Unmarshal([]byte(body), &written))
		var list corev1.EndpointsList
		_, body = get(t, client, b.url()+"/api/v1/endpoints", alice...)
		check(t, json.Unmarshal([]byte(body), &list))
		if len(list.Items) != 1 || list.Items[0].ResourceVersion != written.ResourceVersion {
			t.Fatalf("write %d: wrote version %s, then listed %s", i, written.ResourceVersion, body)
		}
	}
}

// TestReadYourWritesWithoutFeed: if a write does not show in the relay, the cloud itself answers.
func TestReadYourWritesWithoutFeed(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	client := b.client(nil)
	eventually(t, "the relay to be fed", func() bool { return b.hub.relays[0].Status().Synced })
	for _, f := range b.hub.feeders {
		f.Use(nil)
	}
	_, _ = do(t, client, http.MethodPut, b.url()+"/api/v1/namespaces/default/endpoints/web", []byte("{}"), alice...)
	resp, body := get(t, client, b.url()+"/api/v1/namespaces/default/endpoints/web", alice...)
	if resp.StatusCode != http.StatusOK || !bytes.Contains([]byte(body), []byte(`"name":"web"`)) {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if resp, _ := get(t, client, b.url()+"/api/v1/namespaces/default/endpoints/web?resourceVersion=0", alice...); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a read that takes any version waited for one: %d", resp.StatusCode)
	}
}

func TestVersionOf(t *testing.T) {
	object := metav1.ObjectMeta{Name: "web", Namespace: "default", ResourceVersion: "4711"}
	kind := func(k string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: k} }
	asJSON := func(v any) []byte {
		b, err := json.Marshal(v)
		check(t, err)
		return b
	}
	raw, err := (&corev1.Endpoints{ObjectMeta: object}).Marshal()
	check(t, err)
	proto := append(append(wire.AppendEnvelope(nil, wire.Kind{APIVersion: "v1", Kind: "Endpoints"}, len(raw)), raw...), wire.EnvelopeTail()...)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(proto)
	check(t, z.Close())
	tests := []struct {
		name, media, encoding string
		body                  []byte
		want                  uint64
	}{
		{"json", "application/json", "", asJSON(corev1.Endpoints{TypeMeta: kind("Endpoints"), ObjectMeta: object}), 4711},
		{"json with a charset", "application/json; charset=utf-8", "", asJSON(corev1.Endpoints{TypeMeta: kind("Endpoints"), ObjectMeta: object}), 4711},
		{"protobuf", mediaProtobuf, "", proto, 4711},
		{"protobuf, gzip", mediaProtobuf, "gzip", zipped.Bytes(), 4711},
		{"a status", "application/json", "", asJSON(metav1.Status{TypeMeta: kind("Status"), ListMeta: metav1.ListMeta{ResourceVersion: "1"}}), 0},
		{"broken json", "application/json", "", []byte("{"), 0},
		{"broken protobuf", mediaProtobuf, "", proto[:20], 0},
		{"broken gzip", "application/json", "gzip", []byte("{}"), 0},
		{"yaml", "application/yaml", "", []byte("kind: Endpoints"), 0},
		{"nothing", "", "", nil, 0},
	}
	for _, test := range tests {
		h := http.Header{"Content-Type": {test.media}}
		if test.encoding != "" {
			h.Set("Content-Encoding", test.encoding)
		}
		if got := versionOf(h, test.body); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

// TestWrittenForgets: after a minute a write is no longer waited for, and versions may be smaller again.
func TestWrittenForgets(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	w := &written{clock: clock, newest: make([]writtenVersion, 2)}
	for i, step := range []struct {
		wait    time.Duration
		version uint64
		want    uint64
	}{{0, 10, 10}, {0, 9, 10}, {time.Second, 0, 10}, {time.Minute, 0, 0}, {0, 5, 5}} {
		clock.Step(step.wait)
		if step.version > 0 {
			w.remember(1, step.version)
		}
		if got := w.version(1); got != step.want || w.version(0) != 0 {
			t.Errorf("step %d: got %s", i, strconv.FormatUint(got, 10))
		}
	}
}
