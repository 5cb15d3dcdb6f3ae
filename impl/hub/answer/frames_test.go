package answer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

var errReset = errors.New("stream error: stream ID 1; INTERNAL_ERROR")

// frames are those of a watch that shows three objects, the second of them one whose text looks like frames.
func frames(t *testing.T, enc wire.Encoding) (all [][]byte) {
	t.Helper()
	for i, name := range []string{"a", "{\"}]\\\n{}", "c"} {
		o := corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: wire.FormatVersion(uint64(101 + i))},
			Data:       map[string]string{"text": name},
		}
		o.APIVersion, o.Kind = "v1", "ConfigMap"
		if enc == wire.JSON {
			body, err := json.Marshal(&o)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, wire.AppendJSONFrame(nil, wire.Modified, body))
			continue
		}
		raw, err := o.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, wire.AppendProtobufFrame(nil, wire.Modified, wire.Kind{APIVersion: "v1", Kind: "ConfigMap"}, raw))
	}
	return all
}

// watch is the answer of a cloud whose stream ends with an error.
func watch(ctx context.Context, enc wire.Encoding, body io.Reader) *http.Response {
	media := runtime.ContentTypeJSON
	if enc == wire.Protobuf {
		media = runtime.ContentTypeProtobuf + ";stream=watch"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}}, ContentLength: -1, Body: io.NopCloser(body),
		Request: (&http.Request{}).WithContext(ctx),
	}
}

// passing is a clock by which all that is waited for comes at once.
type passing struct{ *clocktesting.FakeClock }

func (p *passing) NewTimer(d time.Duration) clock.Timer {
	t := p.FakeClock.NewTimer(d)
	p.Step(d)
	return t
}

// TestFramesBreak: wherever a stream breaks, and in whatever pieces it comes, whole frames are given, byte by byte, and
// an end in order.
func TestFramesBreak(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		all := frames(t, enc)
		stream := bytes.Join(all, nil)
		for cut := len(all[0]); cut <= len(stream); cut++ {
			want := 0
			for _, f := range all {
				// The line end behind a JSON value need not have come.
				if want+len(f) > cut && (enc != wire.JSON || want+len(f)-1 > cut) {
					break
				}
				want = min(want+len(f), cut)
			}
			for name, pieces := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader,
				"with the error": iotest.DataErrReader,
			} {
				resp := watch(t.Context(), enc, pieces(io.MultiReader(bytes.NewReader(stream[:cut]), iotest.ErrReader(errReset))))
				Whole(resp, nil, &passing{clocktesting.NewFakeClock(time.Now())})
				got, err := io.ReadAll(resp.Body)
				if err != nil || !bytes.Equal(got, stream[:want]) {
					t.Fatalf("%v, %s, broken at %d of %d: %d bytes and %v, want %d", enc, name, cut, len(stream), len(got), err, want)
				}
			}
		}
	}
}

// TestFramesOver: a watch ends behind the frame from which somebody else can go on, and nothing behind it is given.
func TestFramesOver(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		all := frames(t, enc)
		resp := watch(t.Context(), enc, io.MultiReader(bytes.NewReader(bytes.Join(all, nil)), iotest.ErrReader(errReset)))
		Whole(resp, func(shown func() *wire.Event) bool {
			return shown().Version == 102
		}, clocktesting.NewFakeClock(time.Now()))
		got, err := io.ReadAll(resp.Body)
		if want := bytes.Join(all[:2], nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %d bytes and %v, want %d", enc, len(got), err, len(want))
		}
	}
}

// TestFramesPacked: what comes compressed is given plain, each frame as soon as it has come, and ends in order where
// the stream breaks.
func TestFramesPacked(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		all := frames(t, enc)
		r, w := io.Pipe()
		resp := watch(t.Context(), enc, r)
		resp.Header.Set("Content-Encoding", "gzip")
		Whole(resp, nil, &passing{clocktesting.NewFakeClock(time.Now())})
		if got := resp.Header.Get("Content-Encoding"); got != "" {
			t.Errorf("the client is told that it gets %s", got)
		}
		next := make(chan []byte)
		go func() {
			z := gzip.NewWriter(w)
			for f := range next {
				_, _ = z.Write(f)
				_ = z.Flush()
			}
			_ = w.CloseWithError(errReset)
		}()
		for i, f := range all {
			next <- f
			got := make([]byte, len(f))
			if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, f) {
				t.Fatalf("%v, frame %d: %q and %v", enc, i, got, err)
			}
		}
		close(next)
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Errorf("%v: ended with %q and %v", enc, rest, err)
		}
	}
}

// TestFramesShort: a watch that breaks before it has shown anything does not end within the second in which client-go
// takes that for a server that cannot watch.
func TestFramesShort(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	resp := watch(t.Context(), wire.Protobuf, iotest.ErrReader(errReset))
	Whole(resp, nil, clk)
	clk.Step(ShortWatch - time.Second)
	done := make(chan error)
	go func() {
		_, err := io.ReadAll(resp.Body)
		done <- err
	}()
	for !clk.HasWaiters() {
		select {
		case err := <-done:
			t.Fatalf("ended at once: %v", err)
		default:
		}
	}
	clk.Step(999 * time.Millisecond)
	if !clk.HasWaiters() {
		t.Error("ended too soon")
	}
	clk.Step(time.Millisecond)
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	resp = watch(ctx, wire.Protobuf, iotest.ErrReader(errReset))
	Whole(resp, nil, clk)
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
}

// TestFramesRaw: what is no watch, or no frames, passes as it comes, and so does its error.
func TestFramesRaw(t *testing.T) {
	for body, enc := range map[string]wire.Encoding{
		"no json": wire.JSON, "\xff\xff\xff\xff no frame": wire.Protobuf, "{} no more": wire.JSON,
	} {
		resp := watch(t.Context(), enc, io.MultiReader(bytes.NewReader([]byte(body)), iotest.ErrReader(errReset)))
		Whole(resp, nil, clocktesting.NewFakeClock(time.Now()))
		if got, err := io.ReadAll(resp.Body); !errors.Is(err, errReset) || string(got) != body {
			t.Errorf("%q: got %q and %v", body, got, err)
		}
	}
	for name, change := range map[string]func(*http.Response){
		"an error": func(r *http.Response) {
			r.StatusCode = http.StatusGone
		}, "a list": func(r *http.Response) { r.ContentLength = 8 },
		"packed": func(r *http.Response) {
			r.Header.Set("Content-Encoding", "br")
		}, "cbor": func(r *http.Response) { r.Header.Set("Content-Type", "application/cbor-seq") },
	} {
		resp := watch(t.Context(), wire.JSON, iotest.ErrReader(errReset))
		change(resp)
		Whole(resp, nil, clocktesting.NewFakeClock(time.Now()))
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, errReset) {
			t.Errorf("%s: ended by %v", name, err)
		}
	}
}
