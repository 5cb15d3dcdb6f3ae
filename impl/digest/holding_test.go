package digest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestParse: what is told is read again, and what nobody of Weir would write is an error that says what is wrong.
func TestParseHolding(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := Holding{7, map[string]Life{"hub": {begin, begin.Add(time.Hour), true}}}
	if got, err := ParseHolding(h.Text()); err != nil || got.Trust != 7 ||
		got.Certificates["hub"] != h.Certificates["hub"] {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseHolding(""); err != nil || got.Text() != "" {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	many := Holding{Certificates: map[string]Life{}}
	for n := range 17 {
		many.Certificates[string(rune('a'+n))] = h.Certificates["hub"]
	}
	for text, says := range map[string]string{
		"{": "JSON", `{"trust":-1}`: "trust", strings.Repeat(" ", MaxHolding+1): "2048 at most",
		`{"certificates":{"hub":{}}}`: "want a life", many.Text(): "16 at most",
	} {
		if got, err := ParseHolding(text); err == nil || !strings.Contains(err.Error(), says) || len(got.Certificates) > 0 {
			t.Errorf("%.60s: %+v, %v", text, got, err)
		}
	}
}

// cloud is a kube-apiserver that takes annotations of a Node, or does not.
type cloud struct {
	refuses atomic.Bool
	asked   atomic.Int32
	says    atomic.Value
}

func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	c.asked.Add(1)
	if c.refuses.Load() {
		return &http.Response{StatusCode: http.StatusNotFound, Status: "404 Not Found", Body: http.NoBody}, nil
	}
	var patch struct {
		Metadata struct{ Annotations map[string]string }
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = json.Unmarshal(body, &patch)
	}
	if err != nil || req.Method != http.MethodPatch || req.URL.Path != "/api/v1/nodes/edge-1" ||
		len(patch.Metadata.Annotations) != 1 {
		return &http.Response{StatusCode: http.StatusBadRequest, Status: "400", Body: http.NoBody}, err
	}
	c.says.Store(patch.Metadata.Annotations[contract.HoldsAnnotation])
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

// TestTeller: each change is told once. A cloud that does not take it is asked more and more rarely, and told of once.
func TestTeller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, held, log := &cloud{}, atomic.Pointer[Holding]{}, &bytes.Buffer{}
		held.Store(&Holding{})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Teller{
				"edge-1", c, func() Holding { return *held.Load() }, clock.RealClock{}, slog.New(slog.NewTextHandler(log, nil)),
			}.Run(ctx)
		}()
		after := func(d time.Duration, asked int32) {
			t.Helper()
			c.asked.Store(0)
			time.Sleep(d)
			synctest.Wait()
			if n := c.asked.Load(); n != asked {
				t.Errorf("asked %d times, want %d", n, asked)
			}
		}
		after(time.Hour, 0)
		held.Store(&Holding{Trust: 1})
		time.Sleep(look) // it changes once more before it is told
		held.Store(&Holding{Trust: 2})
		after(10*time.Second, 1)
		if says := c.says.Load(); says != `{"trust":2}` {
			t.Errorf("the Node says %v", says)
		}
		after(24*time.Hour, 0)
		c.refuses.Store(true)
		held.Store(&Holding{Trust: 3})
		c.asked.Store(0)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := c.asked.Load(); n < 24*60/15 || n > 24*60/5+20 {
			t.Errorf("a cloud that refuses is asked %d times in a day", n)
		}
		c.refuses.Store(false)
		after(20*time.Minute, 1)
		if says := c.says.Load(); says != `{"trust":3}` {
			t.Errorf("the Node says %v", says)
		}
		cancel()
		<-done
		if n := strings.Count(log.String(), "does not say yet"); n != 1 {
			t.Errorf("told %d times: %s", n, log)
		}
	})
}
