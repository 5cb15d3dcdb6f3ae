package hub

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-edge/weir/impl/hub/access"
)

// TestRefusalsNobodyTakes: clients whose flow control lets nothing through do not make the hub hold what they sent.
func TestRefusalsNobodyTakes(t *testing.T) {
	const connections, streams, header = 20, 100, 60 << 10
	b := newBed(t, 1)
	b.start()
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	before := heap()
	for range connections {
		conn, err := tls.Dial("tcp", b.hub.Addr().String(), &tls.Config{RootCAs: b.local.pool(), NextProtos: []string{"h2"}})
		check(t, err)
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		go func() {
			_, _ = io.WriteString(conn, http2.ClientPreface)
			framer := http2.NewFramer(conn, nil)
			_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for i := range uint32(streams) {
				block.Reset()
				for _, f := range []hpack.HeaderField{
					{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "hub"},
					{Name: ":path", Value: "/api/v1/pods"},
					{Name: "x-long", Value: strings.Repeat("~", header), Sensitive: true},
				} {
					_ = encoder.WriteField(f)
				}
				first := true
				for head := block.Bytes(); len(head) > 0; {
					n := min(len(head), 16<<10)
					rest := head[n:]
					head = head[:n]
					if first {
						_ = framer.WriteHeaders(http2.HeadersFrameParam{
							StreamID: 2*i + 1, BlockFragment: head, EndHeaders: len(rest) == 0, EndStream: true,
						})
					} else if framer.WriteContinuation(2*i+1, len(rest) == 0, head) != nil {
						return
					}
					head, first = rest, false
				}
			}
		}()
	}
	eventually(t, "all to be refused", func() bool {
		_, body := get(t, b.client(nil), "http://"+b.hub.HealthAddr().String()+"/metrics")
		return strings.Contains(body, fmt.Sprintf("weir_hub_refused_requests_total{reason=%q} %d\n", access.RefusedAnonymous,
			connections*streams))
	})
	if grown := heap() - before; grown > 48<<20 {
		t.Errorf("%d refused requests with %d bytes of headers hold %d bytes", connections*streams, header, grown)
	}
	if resp, body := get(t, b.client(nil), b.url()+"/echo/x", alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("another caller: got %d %s", resp.StatusCode, body)
	}
}
