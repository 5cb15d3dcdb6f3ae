package hub

import (
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

// BenchmarkProxiedGet times gets straight to the (fake) cloud and through the hub, in turn, over one connection each,
// so that what else runs on the machine meets both. The difference of the quantiles is what a hub adds.
func BenchmarkProxiedGet(b *testing.B) {
	bed := newBed(b, 1)
	bed.start()
	direct, hub := newTimed(b, bed.clouds[0].url(), bed.ca), newTimed(b, bed.url(), bed.local)
	for b.Loop() {
		direct.get(b)
		hub.get(b)
	}
	for name, q := range map[string]int{"p50": 50, "p99": 99} {
		b.ReportMetric(float64((hub.quantile(q) - direct.quantile(q)).Microseconds()), "added-"+name+"-µs")
		b.ReportMetric(float64(hub.quantile(q).Microseconds()), name+"-µs")
	}
}

// timed is a client that notes how long its gets take.
type timed struct {
	client *http.Client
	url    string
	took   []time.Duration
}

func newTimed(b *testing.B, url string, ca *authority) *timed {
	return &timed{client: testClient(b, &tls.Config{RootCAs: ca.pool()}, true), url: url + "/echo/x"}
}

func (c *timed) get(b *testing.B) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, c.url, nil)
	check(b, err)
	req.Header.Set(alice[0], alice[1])
	began := time.Now()
	resp, err := c.client.Do(req)
	check(b, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	c.took = append(c.took, time.Since(began))
	if resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status)
	}
}

func (c *timed) quantile(percent int) time.Duration {
	slices.Sort(c.took)
	return c.took[len(c.took)*percent/100]
}
