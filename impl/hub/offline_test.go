package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/request"
)

// offlineBed is a hub that keeps what passes, behind a link that can be cut. Endpoints are no pool-scope resource here:
// they pass.
func offlineBed(t *testing.T) (*bed, *cut) {
	t.Helper()
	b := newBed(t, 1)
	link := newCut(t, strings.TrimPrefix(b.clouds[0].url(), "https://"))
	b.config.CloudServers = []string{link.url()}
	b.config.PoolScopeResources = []string{"endpointslices.v1.discovery.k8s.io"}
	b.config.ReturnSpread = 50 * time.Millisecond
	b.config.StoreEvery = 10 * time.Millisecond
	return b, link
}

// visited leaves what a hub keeps of a list by its kubelet.
func (b *bed) visited(cert *tls.Certificate) {
	b.t.Helper()
	stop := b.start()
	b.here()
	b.list(b.client(cert), "")
	b.kept(1)
	stop()
}

// list gives the names, the version, and how it was answered.
func (b *bed) list(c *http.Client, query string, header ...string) (names, version string, resp *http.Response) {
	b.t.Helper()
	resp, body := get(b.t, c, b.url()+"/api/v1/endpoints"+query, header...)
	var l struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct{ Metadata struct{ Name string } }
	}
	if resp.StatusCode == http.StatusOK {
		check(b.t, json.Unmarshal([]byte(body), &l))
	}
	var all []string
	for _, i := range l.Items {
		all = append(all, i.Metadata.Name)
	}
	return strings.Join(all, " "), l.Metadata.ResourceVersion, resp
}

// away waits until the hub knows that the cloud is away, here until it knows that it is back.
func (b *bed) away() {
	b.t.Helper()
	eventually(b.t, "the hub to see that the cloud is away", func() bool { return b.hub.shelter.Status().Away })
}

func (b *bed) here() {
	b.t.Helper()
	eventually(b.t, "the hub to see that the cloud is there",
		func() bool { return !b.hub.shelter.Status().Away && b.hub.cloud.Healthy() })
}

// kept waits until the store has as many complete collections.
func (b *bed) kept(n int) {
	b.t.Helper()
	eventually(b.t, "the store to keep it", func() bool { return b.hub.store.Stats().Complete >= n })
}

// TestReadsWithoutCloud: what passed is answered while the cloud is away, to this node alone; all else says honestly
// why not.
func TestReadsWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	b.clouds[0].put("default", "web")
	b.clouds[0].put("kube-system", "dns")
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node, other := b.client(&cert), b.client(nil)
	stop := b.start()
	b.here()
	for _, path := range []string{"/api/v1/endpoints", "/api/v1/namespaces/default/endpoints/none"} {
		get(t, node, b.url()+path)
	}
	b.kept(2)
	link.set(true)
	b.away()

	for round := range 2 {
		names, version, resp := b.list(node, "")
		if names != "web dns" && names != "dns web" && names != "default/web kube-system/dns" || version != "102" {
			t.Errorf("a list is %s: %q at %s", resp.Status, names, version)
		}
		if resp.Header.Get(contract.AgeHeader) == "" {
			t.Error("a list does not tell its age")
		}
		for path, want := range map[string]int{
			"/api/v1/namespaces/default/endpoints/web":     http.StatusOK,
			"/api/v1/namespaces/kube-system/endpoints/dns": http.StatusOK,
			"/api/v1/namespaces/default/endpoints/none":    http.StatusNotFound, // the cloud has said so
			// and here given a complete list without it.
			"/api/v1/namespaces/kube-system/endpoints/other":    http.StatusNotFound,
			"/api/v1/namespaces/default/configmaps/any":         http.StatusServiceUnavailable,
			"/api/v1/configmaps":                                http.StatusServiceUnavailable,
			"/api/v1/namespaces/default/pods/web/log":           http.StatusServiceUnavailable,
			"/api/v1/endpoints?fieldSelector=metadata.name=web": http.StatusOK,
			"/api/v1/endpoints/":                                http.StatusOK,
			// what only the cloud should judge.
			"//api/v1/endpoints":      http.StatusServiceUnavailable,
			"/api/v1/watch/endpoints": http.StatusServiceUnavailable,
			"/healthz":                http.StatusServiceUnavailable,
		} {
			resp, body := get(t, node, b.url()+path)
			var s metav1.Status
			check(t, json.Unmarshal([]byte(body), &s))
			if resp.StatusCode != want {
				t.Errorf("GET %s: %s, want %d: %s", path, resp.Status, want, s.Message)
			}
			if want == http.StatusServiceUnavailable && (s.Reason != metav1.StatusReasonServiceUnavailable || s.Message == "") {
				t.Errorf("GET %s does not say why: %v", path, s)
			}
		}
		for who, header := range map[string][]string{"nobody": nil, "a token": {"Authorization", "Bearer alice"}} {
			if _, _, resp := b.list(other, "", header...); resp.StatusCode != http.StatusUnauthorized &&
				resp.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s gets %s", who, resp.Status)
			}
		}
		if _, _, resp := b.list(node, "", "Impersonate-User", "alice"); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the node in another's name gets %s", resp.Status)
		}
		if round == 0 { // and after a restart
			stop()
			stop = b.start()
		}
	}
}

// TestFormsWithoutCloud: of a relayed resource, the form that only the cloud knows comes from there; while it is away,
// the next one that the client names, as kubectl does behind its tables.
func TestFormsWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&cert)
	defer b.start()()
	b.here()
	ask := func() (status int, media string) {
		resp, _ := get(t, node, b.url()+"/apis/discovery.k8s.io/v1/endpointslices", "Accept",
			"application/yaml, application/json")
		return resp.StatusCode, resp.Header.Get("Content-Type")
	}
	ask() // as this caller may
	link.set(true)
	b.away()
	if status, media := ask(); status != http.StatusOK || media != "application/json" {
		t.Errorf("without the cloud: %d %s", status, media)
	}
}

// TestWatchesWithoutCloud: watches are silent while the cloud is away, end when it is back, and go on at their version.
func TestWatchesWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	b.clouds[0].put("default", "web")
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&cert)
	b.start()
	b.here()
	b.list(node, "")
	b.kept(1)
	link.set(true)
	b.away()
	lists := b.clouds[0].listed()
	_, version, _ := b.list(node, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := func() *bufio.Scanner {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet,
			b.url()+"/api/v1/endpoints?watch=1&allowWatchBookmarks=true&resourceVersion="+version, nil)
		check(t, err)
		resp, err := node.Do(req)
		check(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		return bufio.NewScanner(resp.Body)
	}
	silent := watch()
	b.clouds[0].put("default", "late")
	link.set(false)
	if silent.Scan() {
		t.Errorf("a watch without the cloud says %s", silent.Text())
	}
	check(t, silent.Err())
	b.here()
	again := watch()
	if !again.Scan() || !strings.Contains(again.Text(), `"late"`) || !strings.HasPrefix(again.Text(), `{"type":"ADDED"`) {
		t.Errorf("the watch goes on with %q, %v", again.Text(), again.Err())
	}
	eventually(t, "the event to be kept", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			b.url()+"/api/v1/namespaces/default/endpoints/late", nil)
		check(t, err)
		req.Header.Set("User-Agent", "Go-http-client/2.0")
		return b.hub.shelter.Offline.Knows("Go-http-client", req, request.Parse(req))
	})
	if n := b.clouds[0].listed(); n != lists {
		t.Errorf("%d lists from the cloud since the cut", n-lists)
	}
}

// TestUnknownCloud: a read that finds no connection is answered from the store before anybody has judged the cloud.
func TestUnknownCloud(t *testing.T) {
	b, link := offlineBed(t)
	b.clouds[0].put("default", "web")
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	b.visited(&cert)
	hole := newHole(t)
	for name, server := range map[string]string{"refused": "https://127.0.0.1:1", "cut": link.url(), "black-holed": hole} {
		t.Run(name, func(t *testing.T) {
			link.set(true)
			b.config.CloudServers = []string{server}
			b.config.HeartbeatInterval, b.config.HeartbeatTimeout = time.Minute, time.Minute
			stop := b.start()
			defer stop()
			if names, _, resp := b.list(b.client(&cert), ""); names != "web" {
				t.Errorf("%s: %q", resp.Status, names)
			}
		})
	}
}

// TestManyWatchesOfOneToken: a caller that opens many watches at once is answered, although nobody knows its token when
// the hub has just started, the first ones stay open, and the cloud never says a word.
func TestManyWatchesOfOneToken(t *testing.T) {
	b, _ := offlineBed(t)
	b.clouds[0].put("default", "web")
	alice := []string{"Authorization", "Bearer alice"}
	stop := b.start()
	b.here()
	b.list(b.client(nil), "", alice...)
	b.kept(1)
	stop()
	b.config.CloudServers = []string{newHole(t)}
	b.start()
	caller := b.client(nil)
	began := make(chan error)
	const many = 8
	for range many {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url()+"/api/v1/endpoints?watch=1"+
				"&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", nil)
			if err == nil {
				req.Header.Set(alice[0], alice[1])
				var resp *http.Response
				if resp, err = caller.Do(req); err == nil {
					defer resp.Body.Close()
					events := bufio.NewScanner(resp.Body)
					if !events.Scan() || !strings.Contains(events.Text(), `"web"`) {
						err = fmt.Errorf("%s: %s, %w", resp.Status, events.Text(), events.Err())
					}
				}
			}
			began <- err
			<-t.Context().Done()
		}()
	}
	for n := range many {
		if err := <-began; err != nil {
			t.Fatalf("after %d watches: %v", n, err)
		}
	}
	if away, _ := b.hub.cloud.IsAway(); away {
		t.Error("some waited until the cloud was judged")
	}
}
