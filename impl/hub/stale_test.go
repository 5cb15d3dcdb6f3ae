package hub

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/identity"
)

// staleBed is a hub that was fed, and starts again with what its disk held: a state without "new". Its pool has no
// coordinator that answers.
func staleBed(t *testing.T) (b *bed, link *cut, before uint64) {
	t.Helper()
	b = newBed(t, 1)
	link = newCut(t, strings.TrimPrefix(b.clouds[0].url(), "https://"))
	b.config.CloudServers = []string{link.url()}
	b.config.StoreKeyFile = NoKey
	b.clouds[0].put("default", "web")
	stop := b.start()
	b.fed()
	before = b.hub.sources.Relays()[0].Status().Version
	stop()
	b.clouds[0].put("default", "new")
	b.config.MaxStaleRead = 30 * time.Second
	b.config.FailoverGracePeriod = 30 * time.Second
	b.config.EnableCoordinator, b.config.CoordinatorServers = true, []string{"https://127.0.0.1:1"}
	return b, link, before
}

const newPath = "/api/v1/namespaces/default/endpoints/new"

// TestStaleAfterRestart: a hub that starts with an old state answers reads with unset version as the cloud would while
// that is there, by one question for all of them, and no list of a client's goes there beside another.
func TestStaleAfterRestart(t *testing.T) {
	b, _, _ := staleBed(t)
	client, cloud := b.client(nil), b.clouds[0]
	from := 0
	cloud.set(func() { from = len(cloud.seen) })
	b.start()
	eventually(t, "the cloud to be judged", b.hub.cloud.Healthy)
	for range 5 {
		resp, body := get(t, client, b.url()+newPath, alice...)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("what the cloud has is answered with %s: %s", resp.Status, body)
		}
	}
	if resp, _ := get(t, client, b.url()+newPath+"?resourceVersion=0", alice...); resp.StatusCode != http.StatusNotFound ||
		resp.Header.Get(contract.AgeHeader) == "" {
		t.Errorf("a read that takes any version: %s, age %q", resp.Status, resp.Header.Get(contract.AgeHeader))
	}
	if resp, body := get(t, testClient(t, nil, false), "http://"+b.hub.HealthAddr().String()+"/readyz"); resp.StatusCode !=
		http.StatusServiceUnavailable ||
		!strings.Contains(body, "not known to be fresh") {
		t.Errorf("ready: %s %s", resp.Status, body)
	}
	resp, body := get(t, client,
		b.url()+"/api/v1/endpoints?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"+
			"allowWatchBookmarks=true&timeoutSeconds=1", alice...)
	if resp.StatusCode != http.StatusGatewayTimeout || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a streaming list: %s %s", resp.Status, body)
	}
	cloud.set(func() {
		questions := 0
		for _, s := range cloud.seen[from:] {
			if s.path == "/api/v1/endpoints" && s.user == "weir:hub:pool-a:edge-1" {
				questions++
			}
		}
		if questions != 1 {
			t.Errorf("%d questions at the cloud", questions)
		}
	})
	b.hub.sources.Alone()
	b.fed() // ready again
	if resp, _ := get(t, client, b.url()+newPath, alice...); resp.Header.Get(contract.AgeHeader) == "" {
		t.Errorf("the relay does not answer, though it has caught up")
	}
}

// TestStaleWithoutCloud: while the cloud is away, what there is is answered, and its age told.
func TestStaleWithoutCloud(t *testing.T) {
	b, link, _ := staleBed(t)
	link.set(true)
	b.start()
	b.hub.judge.Learn(http.Header{"Authorization": {alice[1]}}, false, identity.Attributes{
		Verb: "get", Version: "v1", Resource: "endpoints", Namespace: "default", Name: "new",
	}, http.StatusOK)
	resp, body := get(t, b.client(nil), b.url()+newPath, alice...)
	if age, err := strconv.Atoi(resp.Header.Get(contract.AgeHeader)); resp.StatusCode != http.StatusNotFound ||
		err != nil || age < 0 {
		t.Errorf("%s, age %q: %s", resp.Status, resp.Header.Get(contract.AgeHeader), body)
	}
	b.fed()
	if resp, _ := get(t, b.client(nil), b.url()+newPath,
		append(alice[:2:2], contract.ConsistentHeader, "true")...); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("only the cloud may answer, and it is away: %s", resp.Status)
	}
}

// TestNotBack: a client that has seen a later version than the relay, and then asks for whatever there is now, is not
// shown less. So client-go does after a 504.
func TestNotBack(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	b.fed()
	client := b.client(nil)
	b.unfed()
	seen := b.clouds[0].put("default", "new").ResourceVersion
	if resp, _ := get(t, client, b.url()+"/api/v1/endpoints?resourceVersion="+seen, alice...); resp.StatusCode !=
		http.StatusGatewayTimeout {
		t.Fatal(resp.Status)
	}
	if names, version, resp := b.list(client, "", alice...); names != "new" || version < seen {
		t.Errorf("%s: %q at %s, seen was %s", resp.Status, names, version, seen)
	}
	go b.hub.sources.Alone()
	b.clouds[0].put("default", "later")
	eventually(t, "the relay", func() bool { return b.hub.sources.Relays()[0].Object("default/later") != nil })
	if _, _, resp := b.list(client, "", alice...); resp.Header.Get(contract.AgeHeader) == "" {
		t.Error("the relay does not answer, though it has caught up")
	}
}

// TestConsistentHeader: a read that wants the cloud's answer gets it, and nothing else than true or false is taken for
// a wish.
func TestConsistentHeader(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	b.fed()
	client := b.client(nil)
	for value, want := range map[string]int{
		"true": http.StatusOK, "false": http.StatusNotFound, "": http.StatusNotFound, "yes": http.StatusBadRequest,
	} {
		b.unfed()
		b.clouds[0].put("default", "new")
		header := alice[:2:2]
		if value != "" {
			header = append(header, contract.ConsistentHeader, value)
		}
		if resp, body := get(t, client, b.url()+newPath, header...); resp.StatusCode != want {
			t.Errorf("%q: %s %s", value, resp.Status, body)
		}
	}
}
