package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-edge/weir/impl/exchange"
)

// TestAnswers: what a client is told, with the codes of the OCI distribution specification.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	h := w.add("a")
	w.down.Store(true)
	w.away.Store(true)
	layer := h.put("layer")
	index := h.put(`{"mediaType":"` + ociIndex + `","manifests":[]}`)
	manifest := h.put(`{"schemaVersion":2,"config":{},"layers":[]}`)
	junk := h.put("no manifest")
	h.mirror.slots.Each = 1
	for _, c := range []struct {
		method, path, part string
		status             int
		says, media        string
	}{
		{"GET", "/v2/", "", 200, "{}", "application/json"},
		{"GET", "/v2/app/blobs/" + layer.String(), "", 200, "layer", blobType},
		{"GET", "/v2/app/blobs/" + layer.String(), "bytes=2-", 206, "yer", blobType},
		{"GET", "/v2/app/blobs/" + layer.String(), "bytes=2-3", 206, "ye", blobType},
		{"GET", "/v2/app/blobs/" + layer.String(), "bytes=9-", 416, "", ""},
		{"GET", "/v2/app/blobs/" + layer.String(), "bytes=0-1,3-4", 416, "one range", "application/json"},
		{"HEAD", "/v2/app/blobs/" + layer.String(), "", 200, "", blobType},
		{"GET", "/v2/app/manifests/" + index.String(), "", 200, "manifests", ociIndex},
		{"HEAD", "/v2/app/manifests/" + manifest.String(), "", 200, "", ociManifest},
		{"GET", "/v2/app/manifests/" + junk.String(), "", 404, codeManifest, "application/json"},
		{"GET", "/v2/app/blobs/" + exchange.Digest{}.String(), "", 404, codeBlob, "application/json"},
		{"GET", "/v2/app/manifests/v1?ns=docker.io", "", 404, codeManifest, "application/json"},
		{"GET", "/v2/app/manifests/v1", "", 404, codeManifest, "application/json"},
		{"GET", "/v2/app/blobs/x", "", 400, codeDigest, "application/json"},
		{"GET", "/v2/APP/blobs/" + layer.String(), "", 400, codeName, "application/json"},
		{"GET", "/v2/app/blobs/" + layer.String() + "?ns=secret.example.com", "", 404, codeDenied, "application/json"},
		{"POST", "/v2/app/blobs/uploads/", "", 405, codeUnable, "application/json"},
		{"GET", "/etc/passwd", "", 400, codeName, "application/json"},
	} {
		code, header, body, err := h.get(c.method, c.path, c.part)
		if code != c.status || !strings.Contains(string(body), c.says) || err != nil ||
			c.media != "" && header.Get("Content-Type") != c.media {
			t.Errorf("%s %s %s: %d %s %q, want %d %s with %s: %v", c.method, c.path, c.part, code,
				header.Get("Content-Type"), body, c.status, c.media, c.says, err)
		}
	}
	w.away.Store(false)
	for _, path := range []string{"/v2/app/manifests/", "/v2/app/blobs/"} { // containerd asks both
		if code, _, _, _ := h.get("HEAD", path+manifest.String(), ""); code != 404 {
			t.Errorf("%s: %d, want 404: a pull by digest begins, and the registry judges it", path, code)
		}
	}
	h.mirror.slots.Enter("")
	if code, _, body, _ := h.get("GET", "/v2/app/blobs/"+layer.String(), ""); code != 503 {
		t.Errorf("%d %s with all requests under way, want 503: containerd asks the registry then", code, body)
	}
}

// TestFollow: one hub is to pull, others read what it has as it comes, whole or from a byte on.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		const half, rest = "half of a layer, ", "and the rest"
		d := exchange.Digest(sum(half + rest))
		path := "/v2/app/blobs/" + d.String() + "?ns=docker.io"
		if code, _, _, _ := w.nodes["a"].get("GET", path, ""); code != 404 || w.nodes["a"].counts("pull") != 1 {
			t.Errorf("the first: %d, want 404: it is to pull", code)
		}
		type got struct {
			code int
			body string
			err  error
		}
		follow := func(name, part string) <-chan got {
			out := make(chan got, 1)
			go func() {
				code, _, body, err := w.nodes[name].get("GET", path, part)
				out <- got{code, string(body), err}
			}()
			return out
		}
		b := follow("b", "")
		sleep(3 * time.Second) // the registry is slow: there is no ingest yet
		dir := w.nodes["a"].ingest("k8s.io/1/layer-"+d.String(), "", fmt.Sprint(len(half+rest)))
		sleep(3 * time.Second)
		c := follow("c", "bytes=5-")
		w.nodes["a"].grow(dir, half)
		sleep(exchange.PullStall - time.Second)
		w.nodes["a"].grow(dir, rest)
		if g := <-b; g != (got{200, half + rest, nil}) {
			t.Errorf("whole: %+v", g)
		}
		if g := <-c; g != (got{206, (half + rest)[5:], nil}) {
			t.Errorf("from a byte on: %+v", g)
		}
		for _, name := range []string{"b", "c"} {
			if n := w.nodes[name].counts("growing"); n != 1 {
				t.Errorf("%s read %v times from what grows, want once", name, n)
			}
		}
		cancel()
		wait()
	})
}

// TestStalled: a puller that brings nothing more is left after exchange.PullStall, in the middle of an answer. The
// client comes back for the rest, and its node is to pull.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		d := exchange.Digest{1}
		path := "/v2/app/blobs/" + d.String()
		w.nodes["a"].get("GET", path, "")
		w.nodes["a"].ingest("k8s.io/1/layer-"+d.String(), "1234", "10")
		began := time.Now()
		code, header, body, err := w.nodes["b"].get("GET", path, "")
		if code != 200 || string(body) != "1234" || err == nil || header.Get("Content-Length") != "10" {
			t.Errorf("%d %q of %s, %v: want four bytes of ten, and that it breaks off", code, body,
				header.Get("Content-Length"), err)
		}
		if took := time.Since(began); took < exchange.PullStall || took > exchange.PullStall+time.Second {
			t.Errorf("it broke off after %v, want %v", took, exchange.PullStall)
		}
		if code, _, _, _ := w.nodes["b"].get("GET", path, "bytes=4-"); code != 404 || w.nodes["b"].counts("pull") != 1 {
			t.Errorf("the rest: %d, want 404: it is to pull", code)
		}
		sleep(2 * lookEvery)
		if w.nodes["a"].mirror.Standing().Pulls != 0 {
			t.Error("the puller says that it pulls, and nothing comes")
		}
		cancel()
		wait()
	})
}

// TestDiskFull: a layer has no room at the node that pulls, whose containerd gives it up. Readers see that at once, and
// keep what they have. The next one pulls the rest, and if it has no room either, the one after it, each of them once.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		const room, layer = "0123", "0123456789"
		d := exchange.Digest(sum(layer))
		path, ref := "/v2/app/blobs/"+d.String(), "k8s.io/1/layer-"+d.String()
		w.nodes["a"].get("GET", path, "")
		dir := w.nodes["a"].ingest(ref, room, "10")
		time.AfterFunc(time.Second, func() { _ = os.RemoveAll(dir) })
		began := time.Now()
		code, _, body, err := w.nodes["b"].get("GET", path, "")
		if took := time.Since(began); code != 200 || string(body) != room || err == nil || took > time.Second+2*looks {
			t.Errorf("%d %q after %v: %v, want %q, and that it breaks off when the pull is given up", code, body, took, err,
				room)
		}
		dir = w.nodes["b"].ingest(ref, room, "10") // containerd of b has written what it read
		if code, _, _, _ := w.nodes["b"].get("GET", path, "bytes=4-"); code != 404 || w.nodes["b"].counts("pull") != 1 {
			t.Errorf("the rest: %d, want 404: it is to pull", code)
		}
		if err := os.RemoveAll(dir); err != nil { // no room either
			t.Fatal(err)
		}
		began = time.Now()
		code, _, _, _ = w.nodes["c"].get("GET", path, "")
		if took := time.Since(began); code != 404 || w.nodes["c"].counts("pull") != 1 ||
			took > exchange.PullStall+time.Second {
			t.Errorf("%d after %v, want 404 after %v: it is to pull", code, took, exchange.PullStall)
		}
		if w.nodes["c"].put(layer); w.nodes["a"].counts("pull") != 1 {
			t.Error("a pulls again")
		}
		sleep(2 * lookEvery)
		for _, name := range []string{"a", "b"} {
			if code, _, body, err := w.nodes[name].get("GET", path, ""); code != 200 || string(body) != layer || err != nil {
				t.Errorf("%s: %d %q %v, want all of it when it has room", name, code, body, err)
			}
		}
		cancel()
		wait()
	})
}

// TestNever: a puller of which no byte comes costs another node exchange.PullStall, and no answer has begun by then.
func TestNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		path := "/v2/app/blobs/" + exchange.Digest{1}.String()
		w.nodes["a"].get("GET", path, "")
		began := time.Now()
		code, _, body, err := w.nodes["b"].get("GET", path, "")
		if took := time.Since(began); code != 404 || err != nil || took > exchange.PullStall+time.Second {
			t.Errorf("%d %s after %v: %v, want 404 after %v", code, body, took, err, exchange.PullStall)
		}
	})
}

// TestOff: a node that is off is left at once.
func TestOff(t *testing.T) {
	w := newWorld(t, "a", "b")
	path := "/v2/app/blobs/" + exchange.Digest{1}.String()
	w.nodes["a"].get("GET", path, "")
	w.nodes["a"].off.Store(true)
	if code, _, _, _ := w.nodes["b"].get("GET", path, ""); code != 404 || w.nodes["b"].counts("pull") != 1 {
		t.Errorf("%d, want 404: it is to pull", code)
	}
}

// TestTold: what a hub holds is known to a desk a moment later, to a desk that was restarted, too, and what is gone is
// gone.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		d := w.nodes["a"].put("layer")
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		reads := func(why string, want int) {
			t.Helper()
			code, _, _, err := w.nodes["b"].get("GET", "/v2/app/blobs/"+d.String(), "")
			if code != want || err != nil {
				t.Errorf("%s: %d: %v, want %d", why, code, err, want)
			}
		}
		synctest.Wait()
		reads("at the start", 200)
		w.desk.Reset()
		sleep(exchange.ImagesEvery + lookEvery)
		reads("after a restart of the desk", 200)
		w.down.Store(true)
		reads("without a desk", 404)
		if n := w.nodes["b"].counts("alone"); n != 1 {
			t.Errorf("alone %v times, want once", n)
		}
		w.down.Store(false)
		sleep(2 * exchange.ImagesSilence)
		reads("after long silence", 200)
		remove(t, w.nodes["a"], d)
		sleep(2 * lookEvery)
		reads("when it is gone", 404)
		if s := w.nodes["a"].mirror.Standing(); !s.Desk || s.Holds != 0 {
			t.Errorf("%+v, want that the desk knows that nothing is held", s)
		}
		cancel()
		wait()
	})
}

// TestWrongManifest: a manifest that is another one is never passed on, and the member that served it is left.
func TestWrongManifest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		const body = `{"mediaType":"` + ociIndex + `","manifests":[]}`
		ctx, cancel := context.WithCancel(t.Context())
		d := w.nodes["a"].put(body)
		w.nodes["c"].put(body)
		wait := w.run(ctx)
		synctest.Wait()
		w.nodes["a"].write("blobs/sha256/"+d.Hex(), strings.Replace(body, "[]", "[ ]", 1))
		for range 4 {
			code, _, got, err := w.nodes["b"].get("GET", "/v2/app/manifests/"+d.String(), "")
			if code != 200 || string(got) != body || err != nil {
				t.Errorf("%d %s: %v", code, got, err)
			}
		}
		if n := testutil.ToFloat64(w.nodes["b"].mirror.Metrics.wrong); n != 1 {
			t.Errorf("a liar was found %v times, want once: it is barred then", n)
		}
		cancel()
		wait()
	})
}

// TestGuess: only what a registry said for sure is learned of a tag.
func TestGuess(t *testing.T) {
	const path, ns = "/v2/library/app/manifests/", "?ns=docker.io"
	d, child := exchange.Digest{1}, exchange.Digest{2}
	for name, c := range map[string]struct {
		does func(h *hub)
		want bool
	}{
		"the tag, then its index":       {func(*hub) {}, true},
		"another tag of the repository": {func(h *hub) { h.get("HEAD", path+"v2"+ns, "") }, false},
		"a pull by the digest":          {func(h *hub) { h.get("HEAD", path+d.String()+ns, "") }, false},
		"a tag of another repository":   {func(h *hub) { h.get("HEAD", "/v2/library/other/manifests/v1"+ns, "") }, true},
		"something else came first":     {func(h *hub) { h.get("GET", path+child.String()+ns, "") }, false},
		"too late":                      {func(*hub) { sleep(guessFor + time.Second) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newWorld(t).add("a")
				h.get("HEAD", path+"v1"+ns, "")
				c.does(h)
				h.get("GET", path+d.String()+ns, "")
				got, _, ok := h.mirror.tags.last("docker.io/library/app:v1")
				if (ok && got == d) != c.want {
					t.Errorf("%v %v, want that it is learned: %v", got, ok, c.want)
				}
			})
		})
	}
	book := openTags("", newWorld(t).add("a").mirror.Clock, nil)
	ref := reference{registry: "r", repository: "n", tag: "t", digest: child, manifest: true}
	for _, c := range []struct {
		accept string
		listed bool
		want   string
	}{
		{ociManifest, false, "r/n:t"}, {ociManifest, true, ""}, {dockerIndex + ", */*", true, "r/n:t"}, {"*/*", false, ""},
	} {
		book.ask(ref)
		if got, _ := book.guess(ref, c.accept, func(exchange.Digest) bool { return c.listed }); got != c.want {
			t.Errorf("%s, listed %v: %q, want %q", c.accept, c.listed, got, c.want)
		}
	}
}

// TestKept: what is known of tags outlives a restart, and a file that is torn costs nothing else.
func TestKept(t *testing.T) {
	h := newWorld(t).add("a")
	file := h.Root + "/tags"
	book := openTags(file, h.mirror.Clock, h.mirror.Logger)
	for i := range exchange.MaxTags + 5 {
		book.known[fmt.Sprintf("r/n:%d", i)] = learned{At: time.Unix(int64(i), 0)}
		if i >= exchange.MaxTags {
			delete(book.known, fmt.Sprintf("r/n:%d", i))
		}
	}
	book.learn("docker.io/app:v1", exchange.Digest{1}, time.Unix(1e6, 0), true)
	book.learn("docker.io/app:v1", exchange.Digest{2}, time.Unix(1, 0), true) // is older
	again := openTags(file, h.mirror.Clock, h.mirror.Logger)
	d, _, ok := again.last("docker.io/app:v1")
	if !ok || d != (exchange.Digest{1}) || len(again.known) != exchange.MaxTags {
		t.Errorf("%v %v of %d", d, ok, len(again.known))
	}
	if words := again.words(); len(words) != 1 || words[0].Tag != "docker.io/app:v1" {
		t.Errorf("%d words, want the one that a registry said to this node", len(words))
	}
	if _, _, ok := again.last("r/n:0"); ok {
		t.Error("the oldest one is still there")
	}
	h.write("tags", `{"docker.io/app:v1":{"dig`)
	if torn := openTags(file, h.mirror.Clock, h.mirror.Logger); len(torn.known) != 0 {
		t.Errorf("%v of a torn file", torn.known)
	}
}

// TestShown: what a member may ask for.
func TestShown(t *testing.T) {
	h := newWorld(t).add("a")
	d := h.put("layer")
	for _, c := range []struct {
		method, path, part string
		want               int
	}{
		{"GET", d.String(), "", 200}, {"HEAD", d.String(), "", 200}, {"GET", d.String(), "bytes=1-", 206},
		{"GET", d.String(), "bytes=1-2,3-4", 416}, {"GET", exchange.Digest{}.String(), "", 404}, {"GET", "../x", "", 400},
		{"PUT", d.String(), "", 405},
	} {
		req, err := http.NewRequest(c.method, "http://a/weir/v1/images/blobs/"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Path = "/weir/v1/images/blobs/" + c.path
		if c.part != "" {
			req.Header.Set("Range", c.part)
		}
		resp := serve(h.shown, req)
		if resp.Body.Close(); resp.StatusCode != c.want {
			t.Errorf("%s %s %s: %d, want %d", c.method, c.path, c.part, resp.StatusCode, c.want)
		}
	}
}

// TestRevoked: an answer ends short when the certificate of its reader does.
func TestRevoked(t *testing.T) {
	h := newWorld(t).add("a")
	d := h.put(strings.Repeat("layer", 100_000))
	ctx, revoke := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a/weir/v1/images/blobs/"+d.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	revoke()
	w := &pipe{header: http.Header{}, began: make(chan struct{})}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("%v, want that the answer is aborted", err)
		}
	}()
	h.shown.ServeHTTP(w, req)
}
