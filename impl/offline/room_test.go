package offline

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/request"
)

// TestRoom: clients that take their answers slowly, or not at all, do not make recordings hold memory, and keep
// nobody's from being kept.
func TestRoom(t *testing.T) {
	const size = 3 << 20
	large := func(path string) (*http.Response, []byte) {
		body := bytes.Repeat([]byte("x"), size)
		return answerTo(path, bytes.NewReader(body)), make([]byte, 32<<10)
	}
	b := newBed(t)
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	var open []io.Closer
	for i := range 40 {
		resp, buf := large(fmt.Sprint("/openapi/v3/apis/", i))
		b.Observe("slow", resp, request.Parse(resp.Request), nil)
		for range size/len(buf) - 1 {
			_, err := io.ReadFull(resp.Body, buf)
			check(t, err)
		}
		resp.Request = nil
		open = append(open, resp.Body)
	}
	bodies := 40 * size // of the cloud in this test
	if grown := heap() - before - bodies; grown > 2*MaxRecording {
		t.Errorf("40 answers of %d bytes that stand still hold %d bytes", size, grown)
	}
	resp, _ := large("/openapi/v2")
	b.Observe("quick", resp, request.Parse(resp.Request), nil)
	_, err := io.Copy(io.Discard, resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	if d, ok := b.store.Document(documentName("/openapi/v2", "application/json")); !ok || len(d.Body) != size {
		t.Errorf("a document of a client that takes it is not kept: %t, %d bytes", ok, len(d.Body))
	}
	for _, c := range open {
		check(t, c.Close())
	}
	if b.room.sum != 0 || b.room.still.Len() != 0 {
		t.Errorf("%d bytes of %d recordings are held in the end", b.room.sum, b.room.still.Len())
	}
}

// answerTo is an answer of the cloud.
func answerTo(path string, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1,
		Body:    io.NopCloser(body),
		Request: &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Header: http.Header{}},
	}
}

// TestRoomOfObjects: a list, or a watch, counts with the object that has not come as a whole, not with what has passed.
func TestRoomOfObjects(t *testing.T) {
	b := newBed(t)
	item := func(i int) string {
		return fmt.Sprintf(`{"metadata":{"name":"o-%d","namespace":"default","resourceVersion":"%d"},"data":{"x":%q}}`, i,
			10+i, strings.Repeat("y", 100<<10))
	}
	items := []string{}
	for i := range 200 {
		items = append(items, item(i))
	}
	head := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"500"},"items":[`
	resp := answerTo("/api/v1/configmaps",
		io.MultiReader(strings.NewReader(head+strings.Join(items, ",")), strings.NewReader("]}")))
	b.Observe("slow", resp, request.Parse(resp.Request), nil)
	buf := make([]byte, 32<<10)
	most := 0
	for {
		_, err := resp.Body.Read(buf)
		most = max(most, b.room.sum)
		if err != nil {
			break
		}
	}
	check(t, resp.Body.Close())
	if most == 0 || most > 1<<20 {
		t.Errorf("a list of 20 MB in objects of 100 kB counts as %d bytes", most)
	}
}
