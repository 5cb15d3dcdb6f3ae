package oracle

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/relay"
	relayrest "github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/testkit"
)

// seeded returns the seed of a test, which WEIR_SEED repeats.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WEIR_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d (repeat with WEIR_SEED=%d)", seed, seed)
	return seed
}

// TestRelayAnswersAsKubeAPIServer sends generated requests of each subject to both sides, while its objects change.
func TestRelayAnswersAsKubeAPIServer(t *testing.T) {
	seed := seeded(t)
	config := testCloud(t).RESTConfig()
	config.QPS = -1
	prepare(t, config)
	for _, s := range subjects {
		t.Run(s.Plural, func(t *testing.T) {
			t.Parallel()
			testAnswers(t, config, s, seed)
		})
	}
}

func testAnswers(t *testing.T, config *rest.Config, s subject, seed uint64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := newChurn(t, config, s, seed)
	w.fill(ctx, t)
	pair, version := startRelay(ctx, t, config, s)

	var wg sync.WaitGroup
	churning, stopChurn := context.WithCancel(ctx)
	wg.Go(func() { w.run(churning, t) })
	defer wg.Wait()
	defer stopChurn()

	from := version()
	waitFor(t, "some churn", func() bool { return version() > from+50 })
	rnd := rand.New(rand.NewPCG(seed, 2))
	res := w.resource()
	jobs := make(chan Request)
	for range s.requests/40 + 2 {
		wg.Go(func() {
			for r := range jobs {
				if err := pair.Compare(ctx, r); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	for i := range s.requests {
		v := from + rand.N(version()-from)
		switch i % 5 {
		case 0, 1:
			jobs <- res.List(rnd, v)
		case 2:
			jobs <- res.Get(rnd, v)
		case 3:
			jobs <- res.WatchRequest(rnd, v)
		case 4:
			jobs <- res.Bad(rnd, v)
		}
	}
	close(jobs)
}

func parse(t *testing.T, version string) uint64 {
	t.Helper()
	v, err := wire.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, time.Minute, what, ok)
}

// startRelay serves a relay of a subject that is fed from the cloud.
func startRelay(ctx context.Context, t *testing.T, config *rest.Config, s subject) (Pair, func() uint64) {
	t.Helper()
	res, err := relay.ParseResource(s.relay)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	cloud, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	fallback := httputil.NewSingleHostReverseProxy(u) // as a hub does with what its relay cannot say
	fallback.Transport = cloud.Transport
	r, err := relay.New(relay.Config{Resource: res, Logger: log, RingBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	f, err := source.NewFeeder(source.Config{Relay: r, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	f.Use(&hop.Upstream{Name: "cloud", URL: u, Client: cloud, Gzip: true})
	var wg sync.WaitGroup
	runCtx, stop := context.WithCancel(ctx)
	wg.Go(func() { _ = r.Run(runCtx) })
	wg.Go(func() { _ = f.Run(runCtx) })
	srv := httptest.NewUnstartedServer(&relayrest.Handler{Source: r, Fallback: fallback, Logger: log})
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(func() { stop(); srv.Close(); wg.Wait() })
	waitFor(t, "the relay's first list", func() bool { return r.Status().Synced })
	tr := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
			RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return Pair{
		Cloud: Side{"kube-apiserver", config.Host, cloud},
		Relay: Side{"relay", srv.URL, &http.Client{Transport: tr}},
		Kind:  res.WireKind(),
	}, func() uint64 { return r.Status().Version }
}
