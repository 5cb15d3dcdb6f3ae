package overlay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/offline"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// depot is a hub that shares no slices: its clients read the cloud, which its relay is here, or the store.
type depot struct {
	*hub
	*offline.Offline
	enc   wire.Encoding
	url   string
	cloud http.RoundTripper
	until context.Context // the cloud is away, or there
	turn  context.CancelFunc
}

func newDepot(b *bed, node string, enc wire.Encoding) *depot {
	t := b.t
	t.Helper()
	d := &depot{hub: b.hubs[node], enc: enc}
	d.bare = true
	kept, err := store.Open(store.Config{Dir: t.TempDir(), Clock: b.clock, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	d.Offline = offline.New(offline.Config{
		Store: kept, Corrections: func() offline.Corrections { return d.Overlay }, Clock: b.clock,
		Logger: slog.New(slog.DiscardHandler),
	})
	cloud := httptest.NewServer(&rest.Handler{Source: d.relay})
	d.cloud = &http.Transport{DisableCompression: true}
	d.until, d.turn = context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		d.serve(cloud.URL, w, req)
	}))
	d.url = srv.URL
	t.Cleanup(func() {
		d.turn()
		srv.CloseClientConnections()
		srv.Close()
		cloud.CloseClientConnections()
		cloud.Close()
		d.cloud.(*http.Transport).CloseIdleConnections()
		d.Wait()
		kept.Close()
	})
	return d
}

// serve answers as the hub does.
func (d *depot) serve(cloud string, w http.ResponseWriter, req *http.Request) {
	const component = "proxy"
	q := request.Parse(req)
	if d.away {
		d.Serve(d.until, component, w, req, q)
		return
	}
	if until, yes := d.Corrected(component, req, q); yes {
		d.Serve(until, component, w, req, q)
		return
	}
	ctx, end := context.WithCancel(req.Context())
	defer end()
	defer context.AfterFunc(d.until, end)()
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, cloud+req.URL.String(), nil)
	check(d.bed.t, err)
	out.Header = req.Header
	resp, err := d.cloud.RoundTrip(out)
	check(d.bed.t, err)
	d.Observe(component, resp, q, d.cloud)
	d.Begin(component, resp, q)
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	part, err := []byte(nil), error(nil)
	for whole := make([]byte, 4096); err == nil; {
		_, _ = w.Write(part)
		w.(http.Flusher).Flush()
		var n int
		n, err = resp.Body.Read(whole)
		part = whole[:n]
	}
	_, _ = w.Write(part)
}

// cut has the cloud go away, or come back.
func (d *depot) cut(yes bool) {
	d.turn()
	d.until, d.turn = context.WithCancel(d.bed.t.Context())
	d.away = yes
}

func (d *depot) get(query string) *http.Response {
	d.bed.t.Helper()
	ctx, cancel := context.WithCancel(d.bed.t.Context())
	d.bed.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		d.url+"/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?"+query, nil)
	check(d.bed.t, err)
	req.Header.Set("Accept", "application/json")
	if d.enc == wire.Protobuf {
		req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	check(d.bed.t, err)
	d.bed.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (d *depot) watch(query string) client {
	d.bed.t.Helper()
	resp := d.get("watch=1&" + query)
	return client{wire.NewEventReader(resp.Body, d.enc, d.relay.Resource().WireKind()), func() { resp.Body.Close() }}
}

// lists is what a client lists: "name address state", with * if the version is not the cloud's.
func (d *depot) lists() string {
	t := d.bed.t
	t.Helper()
	var all []string
	_, err := wire.ReadList(d.get("").Body, d.enc, d.relay.Resource().WireKind(), func(o *wire.Object) error {
		text := o.Name + " " + told(t, o)
		if o.Version != d.relay.Object(o.Key).Version {
			text += "*"
		}
		all = append(all, text)
		return nil
	})
	check(t, err)
	return strings.Join(all, ", ")
}

// TestStored: clients of a hub that has slices in its store alone see moved pods as those of relays do. When the cloud
// is back they see no former address until it has the new ones, and then what it has.
func TestStored(t *testing.T) {
	const marks = "&allowWatchBookmarks=true"
	for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		t.Run(fmt.Sprint(enc), func(t *testing.T) {
			b := newBed(t, "a", "b")
			b.hubs["a"].bare = true
			d := newDepot(b, "b", enc)
			other := "other 10.0.0.2 ready"
			first, at := d.lists(), fmt.Sprint("resourceVersion=", 1<<21)
			if first != other+", web "+was {
				t.Fatalf("the cloud has %q", first)
			}
			d.watch(at + marks)
			b.cut(true)
			d.cut(true)
			early := d.watch(at + marks)
			b.hubs["a"].statuses["a"] = "10.0.0.9"
			b.steps("a", "b")
			d.hears("open", early, "MODIFIED web "+now, "BOOKMARK 2097152")
			if got := d.lists(); got != other+", web "+now {
				t.Errorf("a list has %q", got)
			}
			d.hears("resumed", d.watch(at+marks), "MODIFIED web "+now, "BOOKMARK 2097152")
			d.hears("without bookmarks", d.watch(at), "MODIFIED web "+now)
			streaming := d.watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan" + marks)
			d.hears("streaming list", streaming, "ADDED "+other, "ADDED web "+now, "END 2097152")
			d.restart()
			b.steps("a", "b")
			d.hears("after a restart", d.watch(at+marks), "MODIFIED web "+now, "BOOKMARK 2097152")

			late := d.watch(at + marks)
			d.hears("before the return", late, "MODIFIED web "+now, "BOOKMARK 2097152")
			b.cut(false)
			d.cut(false)
			b.passes(10*time.Second, "a", "b")
			d.hears("the cloud is back", late, "EOF")
			if got := d.lists(); got != other+", web "+now {
				t.Errorf("before the cloud knows, a list has %q", got)
			}
			held := d.watch(at + marks)
			d.hears("it does not know yet", held, "MODIFIED web "+now, "BOOKMARK 2097152")
			delete(b.hubs["a"].statuses, "a")
			b.passes(10*time.Second, "a", "b")
			d.apply(slice(t, "web", 1<<21+1, "a 10.0.0.9"))
			b.passes(returns, "a", "b")
			d.ends("it knows", held, 1<<21)
			d.hears("of the cloud", d.watch(at+marks), "MODIFIED web 10.0.0.1 ready*", "BOOKMARK 2097152",
				"MODIFIED web 10.0.0.9 ready")
			b.passes(helloEvery+time.Minute, "a", "b")
			if n := len(d.file.kept.Stored); n != 0 {
				t.Errorf("%d resources are owed for ever", n)
			}
		})
	}
}
