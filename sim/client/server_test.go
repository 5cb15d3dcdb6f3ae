package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/client"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreAnyFunction("go.etcd.io/etcd/client/pkg/v3/fileutil.purgeFile"))
}

// script answers requests one after the other, each with a text of JSON frames; the last answer goes on for ever.
type script struct {
	t *testing.T

	mu      sync.Mutex
	answers []string
	asked   []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	what := "list"
	for _, p := range []string{"watch", "sendInitialEvents"} {
		if r.URL.Query().Get(p) == "true" {
			what = p
		}
	}
	s.asked = append(s.asked, what+" "+r.URL.Query().Get("resourceVersion"))
	answer := ""
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	last := len(s.answers) == 0
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if code, rest, ok := strings.Cut(answer, "!"); ok {
		var n int
		fmt.Sscan(code, &n)
		w.WriteHeader(n)
		answer = rest
	}
	fmt.Fprint(w, answer)
	w.(http.Flusher).Flush()
	if last {
		<-r.Context().Done()
	}
}

func slice(name string, version int) string {
	return fmt.Sprintf(`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"namespace":"a",`+
		`"name":%q,"uid":"u","resourceVersion":"%d"},"addressType":"IPv4","endpoints":null,"ports":null}`, name, version)
}

func item(name string, version int) string {
	return strings.Replace(slice(name, version), `"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",`, "", 1)
}

func frame(typ, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", typ, object)
}

func bookmark(version int, end bool) string {
	annotations := ""
	if end {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return frame("BOOKMARK",
		fmt.Sprintf(`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"%d"%s},`+
			`"addressType":"","endpoints":null,"ports":null}`, version, annotations))
}

func listOf(version int, next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1",`+
		`"metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, version, next, strings.Join(items, ","))
}

const expired = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old",` +
	`"reason":"Expired","code":410}`

// TestRecording: what a server says is in the recording, op by op.
func TestRecording(t *testing.T) {
	plain := client.Spec{Client: "test", Resource: client.EndpointSlices, NoWatchList: true}
	streaming := client.Spec{Client: "test", Resource: client.EndpointSlices}
	json := client.Spec{Client: "test", Resource: client.EndpointSlices, NoWatchList: true, JSON: true}
	tests := []struct {
		name    string
		specs   []client.Spec
		answers []string
		asked   []string
		ops     []string
	}{
		{
			name: "list and watch", specs: []client.Spec{plain, json},
			answers: []string{
				listOf(10, "", item("x", 4), item("y", 5)),
				frame("MODIFIED", slice("x", 11)) + bookmark(12, false) + frame("DELETED", slice("y", 13)),
				frame("ADDED", slice("y", 14)),
			},
			asked: []string{"list 0", "watch 10", "watch 13"},
			ops: []string{
				"list of 2 at 10", "watch from 10", "MODIFIED a/x at 11", "bookmark at 12", "DELETED a/y at 13", "closed",
				"watch from 13", "ADDED a/y at 14",
			},
		}, {
			name: "streaming list", specs: []client.Spec{streaming},
			answers: []string{
				frame("ADDED", slice("x", 9)) + frame("ADDED", slice("y", 5)) + frame("MODIFIED", slice("y", 10)) +
					bookmark(10, true) + frame("MODIFIED", slice("x", 11)),
				"",
			},
			asked: []string{"sendInitialEvents ", "watch 11"},
			ops: []string{
				"streaming list from 0", "ADDED a/x at 9", "ADDED a/y at 5", "MODIFIED a/y at 10", "initial-end at 10",
				"MODIFIED a/x at 11",
				"closed", "watch from 11",
			},
		}, {
			name: "expired", specs: []client.Spec{plain, json},
			answers: []string{
				listOf(10, "", item("x", 4)), frame("MODIFIED", slice("x", 11)) + frame("ERROR", expired),
				listOf(20, "", item("x", 15)), "",
			},
			asked: []string{"list 0", "watch 10", "list 11", "watch 20"},
			ops: []string{
				"list of 1 at 10", "watch from 10", "MODIFIED a/x at 11", "error 410: too old", "list of 1 at 20", "watch from 20",
			},
		}, {
			name: "refused", specs: []client.Spec{plain, json},
			answers: []string{
				"503!" + strings.NewReplacer("410", "503", "Expired", "ServiceUnavailable", "too old", "not yet").Replace(expired),
				listOf(10, ""), "",
			},
			asked: []string{"list 0", "list 0", "watch 10"},
			ops:   []string{"error 503: not yet", "list of 0 at 10", "watch from 10"},
		}, {
			name: "pages", specs: []client.Spec{plain, json},
			answers: []string{
				listOf(10, "more", item("x", 4)), listOf(10, "and more", item("y", 5)), listOf(10, "", item("z", 6)), "",
			},
			asked: []string{"list 0", "list ", "list ", "watch 10"},
			ops:   []string{"list of 3 at 10", "watch from 10"},
		}, {
			name: "unknown field", specs: []client.Spec{json},
			answers: []string{
				listOf(10, ""), frame("ADDED", strings.Replace(slice("x", 11), "ports", "prots", 1)) +
					frame("ADDED", slice("x", 12)), listOf(12, ""), "",
			},
			asked: []string{"list 0", "watch 10", "list 10", "watch 12"},
			ops: []string{
				"list of 0 at 10", "watch from 10", `malformed 0: strict decoding error: unknown field "prots"`,
				`error 500: an error on the server ("unable to decode an event from the watch stream: strict decoding error: ` +
					`unknown field \"prots\"") has prevented the request from succeeding`,
				"list of 0 at 12", "watch from 12",
			},
		}, {
			name: "no kind", specs: []client.Spec{json},
			answers: []string{listOf(10, ""), frame("ADDED", item("x", 11)), ""},
			ops:     []string{"list of 0 at 10", "watch from 10", "malformed 0: a *v1.EndpointSlice that does not say its kind"},
		}, {
			name: "a list of something else", specs: []client.Spec{json},
			answers: []string{strings.Replace(listOf(10, ""), "EndpointSliceList", "EndpointSlice", 1), ""},
			ops:     []string{`malformed 0: strict decoding error: unknown field "metadata.continue", unknown field "items"`},
		}, {
			name: "versions that are none", specs: []client.Spec{plain, json},
			answers: []string{
				listOf(10, "", strings.Replace(item("x", 4), `"4"`, `"four"`, 1)),
				frame("ADDED", strings.Replace(slice("x", 11), `"uid":"u",`, "", 1)), "",
			},
			ops: []string{
				`malformed 0: resourceVersion "four" is not a number (KEP-5504)`, "watch from 10",
				`malformed 0: object "a/x" with uid "" at "11": has to have all three`,
			},
		},
	}
	for _, test := range tests {
		for _, spec := range test.specs {
			t.Run(fmt.Sprintf("%s/json=%v", test.name, spec.JSON), func(t *testing.T) {
				s := &script{t: t, answers: test.answers}
				server := httptest.NewServer(s)
				defer server.Close()
				ctx, cancel := context.WithCancel(t.Context())
				stream, err := client.Start(ctx, &rest.Config{Host: server.URL}, spec)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Wait()
				defer cancel()
				var got []string
				eventually(t, func() (bool, string) {
					got = nil
					for _, op := range stream.Recording.Ops() {
						got = append(got, op.String())
					}
					return len(got) >= len(test.ops), strings.Join(got, "\n")
				})
				if diff := cmp.Diff(test.ops, got[:len(test.ops)]); diff != "" {
					t.Errorf("recorded (-want +got):\n%s", diff)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if diff := cmp.Diff(test.asked, s.asked[:min(len(s.asked), len(test.asked))]); test.asked != nil && diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestOneConnection: the streams of one Open share a connection, those of another do not, and none is left behind.
func TestOneConnection(t *testing.T) {
	s := &script{t: t}
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	var mu sync.Mutex
	from := map[string]bool{}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		s.ServeHTTP(w, r)
	})
	server.StartTLS()
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: "same", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	ctx, cancel := context.WithCancel(t.Context())
	var streams []*client.Stream
	for range 2 {
		opened, err := client.Open(ctx, config, client.Specs("coredns")...)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, opened...)
	}
	eventually(t, func() (bool, string) {
		n := 0
		for _, stream := range streams {
			if len(stream.Recording.Ops()) > 0 {
				n++
			}
		}
		return n == 4, fmt.Sprint(n, " streams of 4 are open")
	})
	cancel()
	for _, stream := range streams {
		stream.Wait()
	}
	if len(from) != 2 {
		t.Errorf("%d connections, want 2", len(from))
	}
	for _, specs := range [][]client.Spec{nil, {{Resource: "pods"}}, {{Resource: client.Endpoints, Selector: "a in"}}} {
		if _, err := client.Open(t.Context(), config, specs...); err == nil {
			t.Errorf("%+v was opened", specs)
		}
	}
}
