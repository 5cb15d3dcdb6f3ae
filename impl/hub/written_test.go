package hub

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/relayed"
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
	eventually(t, "the relay to be fed", func() bool { return b.hub.sources.Relays()[0].Status().Synced })
	b.unfed()
	_, _ = do(t, client, http.MethodPut, b.url()+"/api/v1/namespaces/default/endpoints/web", []byte("{}"), alice...)
	resp, body := get(t, client, b.url()+"/api/v1/namespaces/default/endpoints/web", alice...)
	if resp.StatusCode != http.StatusOK || !bytes.Contains([]byte(body), []byte(`"name":"web"`)) {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if resp, _ := get(t, client, b.url()+"/api/v1/namespaces/default/endpoints/web?resourceVersion=0",
		alice...); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a read that takes any version waited for one: %d", resp.StatusCode)
	}
}

// TestReadWhatWasWritten: whatever the answer to a write tells, what is read after it at the same hub is what the cloud
// has, though the relay does not have it yet. It comes a moment after the read.
func TestReadWhatWasWritten(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	b.fed()
	client, cloud := b.client(nil), b.clouds[0]
	const all = "/api/v1/namespaces/default/endpoints"
	for name, c := range map[string]struct {
		method, path, body string
		key                string
		header             []string
		code               int
	}{
		"create":               {http.MethodPost, "", `{"metadata":{"name":"new"}}`, "new", nil, http.StatusOK},
		"create what is there": {http.MethodPost, "", `{"metadata":{"name":"web"}}`, "web", nil, http.StatusConflict},
		"update":               {http.MethodPut, "/web", "{}", "web", nil, http.StatusOK},
		"update an old version": {
			http.MethodPut, "/web", `{"metadata":{"resourceVersion":"1"}}`, "web", nil, http.StatusConflict,
		},
		"update what is gone": {http.MethodPatch, "/gone", "{}", "gone", nil, http.StatusNotFound},
		"delete":              {http.MethodDelete, "/web", "", "web", nil, http.StatusOK},
		"delete what is gone": {http.MethodDelete, "/gone", "", "gone", nil, http.StatusNotFound},
		"delete all":          {http.MethodDelete, "", "", "web", nil, http.StatusOK},
		"status":              {http.MethodPut, "/web/status", "{}", "web", nil, http.StatusOK},
		"scale":               {http.MethodPut, "/web/scale", "{}", "web", nil, http.StatusOK},
		"evict":               {http.MethodPost, "/web/eviction", "{}", "web", nil, http.StatusOK},
		"a write that fails": {
			http.MethodPut, "/web", "{}", "web", []string{"Fail", "500"}, http.StatusInternalServerError,
		},
		"a write without an answer": {http.MethodPut, "/web", "{}", "web", []string{"Fail", "break"}, http.StatusBadGateway},
	} {
		for _, read := range []string{all, all + "/" + c.key, "/api/v1/endpoints?watch=1&timeoutSeconds=1"} {
			if strings.Contains(read, "watch") && name != "delete" {
				continue // takes a second
			}
			t.Run(name+", then "+read, func(t *testing.T) {
				cloud.remove("default", "new")
				cloud.put("default", "gone")
				last := cloud.put("default", "web").ResourceVersion
				eventually(t, "the relay to be as before", func() bool {
					return strconv.FormatUint(b.hub.sources.Relays()[0].Status().Version, 10) == last
				})
				b.unfed()
				cloud.remove("default", "gone")
				cloud.put("default", "web")
				resp, body := do(t, client, c.method, b.url()+all+c.path, []byte(c.body), append(c.header, alice...)...)
				if resp.StatusCode != c.code {
					t.Fatalf("the write: %s %s", resp.Status, body)
				}
				cloud.pass()
				go b.hub.sources.Alone()
				_, got := get(t, client, b.url()+read, alice...)
				_, want := get(t, client, b.url()+read, append(alice[:2:2], contract.ConsistentHeader, "true")...)
				if got, want := show(got, c.key), show(want, c.key); got != want {
					t.Errorf("read %s, the cloud has %s", got, want)
				}
			})
		}
	}
}

// TestReadWhatNobodyKnows: the cloud refuses to tell the hub what a write of unknown outcome led to. Then the relay
// does not answer: what it has is old.
func TestReadWhatNobodyKnows(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	b.fed()
	client, cloud := b.client(nil), b.clouds[0]
	const all = "/api/v1/namespaces/default/endpoints"
	for name, path := range map[string]string{"an object": all + "/web/scale", "any object": ""} {
		for _, read := range []string{all, all + "/web"} {
			t.Run(name+", then "+read, func(t *testing.T) {
				cloud.set(func() { cloud.denies = func(string, string) int { return 0 } })
				go b.hub.sources.Alone()
				last := cloud.put("default", "web").ResourceVersion
				eventually(t, "the relay to be as before",
					func() bool { return strconv.FormatUint(b.hub.sources.Relays()[0].Status().Version, 10) == last })
				b.unfed()
				cloud.set(func() {
					cloud.denies = func(user, _ string) int {
						if user == "weir:hub:pool-a:edge-1" {
							return http.StatusInternalServerError
						}
						return 0
					}
				})
				if path == "" {
					cloud.put("default", "web")
					b.hub.door.Consistency.Ahead(&relayed.Target{Relay: b.hub.sources.Relays()[0]}, math.MaxUint64)
				} else if resp,
					body := do(t, client, http.MethodPut, b.url()+path, []byte("{}"), alice...); resp.StatusCode != http.StatusOK {
					t.Fatalf("the write: %s %s", resp.Status, body)
				}
				_, body := get(t, client, b.url()+read, alice...)
				want := strconv.FormatUint(cloud.relays["endpoints"].Status().Version, 10)
				if got := show(body, "web"); got != want || got == last {
					t.Errorf("read version %s, the cloud has %s: %s", got, want, body)
				}
			})
		}
	}
}

// show is what an answer says of an object.
func show(body, name string) string {
	for line := range strings.Lines(body) {
		var l struct {
			Items    []corev1.Endpoints
			Object   corev1.Endpoints
			Metadata metav1.ObjectMeta
		}
		_ = json.Unmarshal([]byte(line), &l)
		for _, e := range append(l.Items, l.Object, corev1.Endpoints{ObjectMeta: l.Metadata}) {
			if e.Name == name {
				return e.ResourceVersion
			}
		}
	}
	return "nothing"
}
