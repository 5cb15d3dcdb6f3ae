package hub

import (
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

// BenchmarkProxiedGet compares a get straight to the (fake) cloud with one through the hub, over one connection each. The
// difference of the quantiles is what a hub adds.
func BenchmarkProxiedGet(b *testing.B) {
	b.Run("direct", func(b *testing.B) { benchmarkGet(b, false) })
	b.Run("hub", func(b *testing.B) { benchmarkGet(b, true) })
}

func benchmarkGet(b *testing.B, throughHub bool) {
	bed := newBed(b, 1)
	bed.start()
	url, roots := bed.clouds[0].url(), bed.ca.pool()
	if throughHub {
		url, roots = bed.url(), bed.local.pool()
	}
	client := testClient(b, &tls.Config{RootCAs: roots}, true)
	var took []time.Duration
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url+"/echo/x", nil)
		check(b, err)
		req.Header.Set(alice[0], alice[1])
		began := time.Now()
		resp, err := client.Do(req)
		check(b, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		took = append(took, time.Since(began))
		if resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
