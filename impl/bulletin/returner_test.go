package bulletin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

// taking is a cloud with the one ConfigMap, which refuses to show it while it has none.
type taking struct {
	mu      sync.Mutex
	has     *corev1.ConfigMap
	asked   []string
	changes func() // called once before the next update
}

func (c *taking) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, req.Method)
	answer := func(code int, o any) (*http.Response, error) {
		body, err := json.Marshal(o)
		return &http.Response{StatusCode: code, Status: strconv.Itoa(code), Body: io.NopCloser(bytes.NewReader(body))}, err
	}
	if c.has == nil || req.URL.Path != "/api/v1/namespaces/weir-pki/configmaps/returned-harbour" {
		return answer(http.StatusForbidden, nil)
	}
	if req.Method == http.MethodPut {
		if change := c.changes; change != nil {
			c.changes = nil
			change()
		}
		m := &corev1.ConfigMap{}
		if err := json.NewDecoder(req.Body).Decode(m); err != nil {
			return nil, err
		}
		if m.ResourceVersion != c.has.ResourceVersion {
			return answer(http.StatusConflict, nil)
		}
		n, err := strconv.Atoi(m.ResourceVersion)
		if err != nil {
			return nil, err
		}
		c.has = m
		c.has.ResourceVersion = strconv.Itoa(n + 1)
	}
	return answer(http.StatusOK, c.has)
}

// lacking holds what the cloud has forgotten.
type lacking struct {
	Holder
	lacks func() []byte
}

func (l lacking) Lacks([]byte) []byte { return l.lacks() }

// watched is of a cloud that is watched for long.
func watched(key string, lacks func() []byte) *Document {
	d := New(lacking{lacks: lacks}, &Document{Key: key})
	d.shown.begin(time.Now(), true)
	return d
}

// TestReturner: what the cloud lacks is given back once, and again when somebody else was faster. A cloud that refuses
// is asked ever more rarely.
func TestReturner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, lacks, log := &taking{}, "", &bytes.Buffer{}
		set := func(f func()) { // the returner reads what the test writes: by the clock alone nothing comes before anything
			c.mu.Lock()
			defer c.mu.Unlock()
			f()
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Returner{
				Pool: "harbour", Cloud: c, Clock: clock.RealClock{}, Logger: slog.New(slog.NewTextHandler(log, nil)),
				Board: Board{
					watched(contract.TrustKey, func() []byte { return nil }), watched(contract.DenylistKey, func() (now []byte) {
						set(func() { now = []byte(lacks) })
						return now
					}),
				},
			}.Run(ctx)
		}()
		pass := func(d time.Duration) string {
			set(func() { c.asked = nil })
			time.Sleep(d)
			synctest.Wait()
			var asked string
			set(func() { asked = strings.Join(c.asked, " ") })
			return asked
		}
		if asked := pass(24 * time.Hour); asked != "" {
			t.Errorf("nothing lacks, and it asks: %s", asked)
		}
		set(func() { lacks = "list 7" })
		if asked := pass(24 * time.Hour); strings.Count(asked, "GET") > 24*6*3 || strings.Contains(asked, "PUT") {
			t.Errorf("of a cloud that refuses it asks: %s", asked)
		}
		set(func() { lacks = "" })
		pass(time.Minute)
		set(func() {
			c.has = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
			c.changes = func() { c.has.ResourceVersion = "2" }
			lacks = "list 8"
		})
		if pass(time.Hour); c.has.Data[contract.DenylistKey] != "list 8" || len(c.has.Data) != 1 {
			t.Errorf("the cloud has %v", c.has.Data)
		}
		if asked := pass(24 * time.Hour); strings.Contains(asked, "PUT") || strings.Count(asked, "GET") > 24*6*3 {
			t.Errorf("it was given back, and is again: %s", asked)
		}
		set(func() { lacks = strings.Repeat("x", maxReturned+1) })
		pass(time.Minute)
		if asked := pass(time.Hour); asked != "" {
			t.Errorf("what has no room is given back: %s", asked)
		}
		cancel()
		<-done
		if n := strings.Count(log.String(), "It was given back"); n != 1 {
			t.Errorf("told %d times: %s", n, log)
		}
		if !strings.Contains(log.String(), "what=["+contract.DenylistKey+"]") {
			t.Errorf("it does not say what: %s", log)
		}
	})
}
