package attack

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/testca"
)

// Kinds of delta frames of package wire.
const (
	wholeFrame   = 'w'
	plainFrame   = 'p'
	changedFrame = 'c'
)

// frameOf is one delta frame of package wire.
func frameOf(kind byte, body []byte) []byte {
	return append(append(binary.AppendUvarint(nil, uint64(len(body)+1)), kind), body...)
}

// inflates is a zstd frame (RFC 8878) that makes many zeros of four bytes for each block. It does not say how many.
func inflates(bytes int) []byte {
	const block = 128 << 10
	z := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3} // a window of 8 MiB
	for n := 0; n < bytes; n += block {
		head := uint32(block<<3 | 1<<1) // of one byte, repeated
		if n+block >= bytes {
			head |= 1 // the last one
		}
		z = append(z, byte(head), byte(head>>8), byte(head>>16), 0)
	}
	return z
}

// declares is a zstd frame that says that it makes so many bytes.
func declares(bytes uint64) []byte {
	z := append([]byte{0x28, 0xb5, 0x2f, 0xfd}, 0xc0, 13<<3)
	z = binary.LittleEndian.AppendUint64(z, bytes)
	return append(z, 1, 0, 0) // one block, empty, the last
}

// many is one frame of as many events as it may have.
func many(ev []byte) []byte {
	var all [][]byte
	for n := 0; n < 8<<20-(1<<10); n += len(ev) + 2 {
		all = append(all, ev)
	}
	return wire.AppendDeltaEvents(nil, all...)
}

// target is what a watch is of: a resource, the version behind which it begins, and that of an object of it.
type target struct {
	kind       wire.Kind
	from, base uint64
}

// bombs are what a gate may send in a watch. Each writes until it has said all, or nobody reads any more.
func bombs() []func(w io.Writer, of target) {
	send := func(w io.Writer, all ...[]byte) bool {
		for _, b := range all {
			if _, err := w.Write(b); err != nil {
				return false
			}
		}
		return true
	}
	garbage := func(w io.Writer, kind byte, length uint64) {
		send(w, append(binary.AppendUvarint(nil, length), kind))
		for b := make([]byte, 64<<10); length > 0 && send(w, b); length -= min(length, uint64(len(b))) {
		}
	}
	bookmark := func(of target, testimony string) []byte {
		return wire.AppendDeltaBookmark(nil, &wire.Event{
			Type: wire.Bookmark, Kind: of.kind, Version: of.from, Testimony: testimony,
		})
	}
	return []func(io.Writer, target){
		func(w io.Writer, of target) {
			for long := bookmark(of, strings.Repeat("1", 4<<20)); send(w, long); {
			}
		},
		func(w io.Writer, of target) {
			send(w, frameOf(changedFrame, append(binary.AppendUvarint(nil, of.base), inflates(4<<30)...)))
		},
		func(w io.Writer, _ target) { send(w, frameOf(wholeFrame, inflates(4<<30))) },
		func(w io.Writer, of target) { // many events of nothing in one frame
			object, _ := (&metav1.PartialObjectMetadata{
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: wire.FormatVersion(of.from)},
			}).Marshal()
			failure, _ := (&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone}).Marshal()
			send(w, many(wire.AppendProtobufFrame(nil, wire.Bookmark, of.kind, object)),
				many(wire.AppendProtobufFrame(nil, wire.Error, wire.Kind{APIVersion: "v1", Kind: "Status"}, failure)))
		},
		func(w io.Writer, _ target) { send(w, frameOf(wholeFrame, declares(1<<60))) },
		func(w io.Writer, _ target) { garbage(w, wholeFrame, wire.MaxObject) },
		func(w io.Writer, of target) { // without end, of nothing
			nothing := frameOf(wholeFrame, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3, 1, 0, 0})
			same := bookmark(of, "")
			for end := time.Now().Add(4 * time.Second); time.Now().Before(end) && send(w, nothing, nothing, same); {
			}
			garbage(w, plainFrame, 1<<62)
		},
	}
}

// bomber poses as weir-gate: it says that it is ready, has forgotten each version, and answers watches with bombs.
type bomber struct {
	bases map[string]uint64 // of an object, by resource

	mu   sync.Mutex
	sent map[string]int // by resource
}

func (b *bomber) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	kind, known := map[string]wire.Kind{
		"endpoints":      {APIVersion: "v1", Kind: "Endpoints"},
		"endpointslices": {APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
	}[resource]
	from, err := wire.ParseVersion(q.Get("resourceVersion"))
	switch {
	case !known:
		return // it is ready
	case q.Get("watch") != "1" || q.Get("sendInitialEvents") == "true" || err != nil || b.done(resource):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		return
	}
	b.mu.Lock()
	n := b.sent[resource]
	b.sent[resource]++
	b.mu.Unlock()
	w.Header().Set(rest.HistoryHeader, req.Header.Get(rest.HistoryHeader))
	w.Header().Set("Content-Type", wire.DeltaMedia+";stream=watch")
	w.WriteHeader(http.StatusOK)
	bombs()[n](w, target{kind, from, b.bases[resource]})
}

// String counts what was sent.
func (b *bomber) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.sent)
}

func (b *bomber) done(resource string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[resource] >= len(bombs())
}

// falseGate has the hub of the place go to a gate of the attacker's: he has the key, and stands in the way.
func (x *scene) falseGate(h http.Handler) (stop func(), err error) {
	_, authority, err := x.vault.Gate()
	if err != nil {
		return nil, err
	}
	pair, err := authority.Issue(testca.Request{CommonName: "weir-gate", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	pool, err := x.vault.Authority(x.place.name)
	if err != nil {
		return nil, err
	}
	coordinator, err := x.vault.Coordinator(x.place.name)
	if err != nil {
		return nil, err
	}
	folder, err := x.vault.Kept(runtime.HubOf(x.node(1)))
	if err != nil {
		return nil, err
	}
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	stop = func() { s.CloseClientConnections(); s.Close() }
	u, err := url.Parse(s.URL)
	if err != nil {
		return stop, err
	}
	line, err := directory.Entry{
		Pool: x.place.name, Version: bulletin.Next(0, time.Now()), Mode: contract.ModeCoordinator,
		Coordinators: []string{"https://" + coordinator},
		Gate:         directory.Gate{Server: "https://" + u.Host, Authorities: string(authority.CertPEM())},
	}.Sign(pool.Signer())
	if err != nil {
		return stop, err
	}
	return stop, os.WriteFile(filepath.Join(folder, "directory"), line, 0o600)
}

// sizeOf is how many bytes a part has logged.
func sizeOf(part runtime.Part) int64 {
	info, err := os.Stat(part.LogFile())
	if err != nil {
		return 0
	}
	return info.Size()
}

// frameBombs plays a gate that means harm to the hub that leads.
func frameBombs(ctx context.Context, x *scene) error {
	slice, err := x.admin.DiscoveryV1().EndpointSlices("a").Get(ctx, "shop-1", metav1.GetOptions{})
	if err != nil {
		return err
	}
	former, err := x.admin.CoreV1().Endpoints("a").Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		return err
	}
	b := &bomber{sent: map[string]int{}, bases: map[string]uint64{}}
	for resource, version := range map[string]string{
		"endpointslices": slice.ResourceVersion, "endpoints": former.ResourceVersion,
	} {
		if b.bases[resource], err = wire.ParseVersion(version); err != nil {
			return err
		}
	}
	stop, err := x.falseGate(b)
	if stop != nil {
		defer stop()
	}
	if err != nil {
		return err
	}
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	reads := ask{as: "reader", path: slices1, codes: ok, has: "shop-1"}
	if err := until(ctx, "the hub to serve", func() bool { return x.send(ctx, reads).right(reads) }); err != nil {
		return err
	}
	alive, sees, end, err := x.watching(ctx)
	if err != nil {
		return err
	}
	defer end()
	served, asked, before := 0, 0, sizeOf(x.hub(1))
	err = x.watchMemory(ctx, "bombs for both resources", func() error {
		return until(ctx, "all bombs to be sent", func() bool {
			if asked++; x.insist(ctx, reads).right(reads) {
				served++
			}
			return b.done("endpoints") && b.done("endpointslices")
		})
	})
	x.note("bombs: %s", b)
	logged := sizeOf(x.hub(1)) - before
	x.judge(logged < 1<<20, "the log has %d kB more", logged>>10)
	x.judge(served == asked, "%d of %d reads are answered meanwhile", served, asked)
	stamp := fmt.Sprintf("bombed-%d", time.Now().UnixNano())
	if _, err := x.admin.DiscoveryV1().EndpointSlices("a").Patch(ctx, "shop-1", "application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"bombed":"`+stamp+`"}}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	x.control(within(ctx, patience, func() bool { return sees(stamp) }) && alive(),
		"a change is seen in a watch of before")
	return err
}
