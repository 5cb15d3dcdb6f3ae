package runner

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// TestReach: while the apiserver is away requests of the testbed wait, and it goes when those that are under way have
// been read to their end.
func TestReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReach()
		rt := waiting{r, answering("the whole answer")}
		ask := func(ctx context.Context) (*http.Response, error) {
			return rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://cloud/", http.NoBody))
		}
		first, err := ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gone, again := false, make(chan error, 1)
		var back func()
		go func() { back, _ = r.away(t.Context()); gone = true }()
		synctest.Wait()
		if gone {
			t.Error("the apiserver went while an answer was being read")
		}
		go func() {
			resp, err := ask(t.Context())
			if err == nil {
				err = resp.Body.Close()
			}
			again <- err
		}()
		if text, err := io.ReadAll(first.Body); err != nil || string(text) != "the whole answer" ||
			first.Body.Close() != nil {
			t.Errorf("%q, %v", text, err)
		}
		synctest.Wait()
		if !gone || len(again) > 0 {
			t.Errorf("the apiserver is away: %v; %d requests were answered meanwhile", gone, len(again))
		}
		back()
		if err := <-again; err != nil {
			t.Errorf("a request that waited: %v", err)
		}
	})
}

// TestFirstErrorIsTold: when the apiserver does not come back, the run ends with that, and not with what could not be
// written meanwhile.
func TestFirstErrorIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("kube-apiserver does not start")
		r := newReach()
		g, ctx := errgroup.WithContext(t.Context())
		_, err := r.away(ctx)
		if err != nil {
			t.Fatal(err)
		}
		g.Go(func() error {
			_, err := waiting{r, refusing{}}.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPut, "https://cloud/",
				http.NoBody))
			return err
		})
		synctest.Wait()
		g.Go(func() error { return lost })
		if err := g.Wait(); !errors.Is(err, lost) {
			t.Errorf("the run ends with %v", err)
		}
	})
}

// TestThrough: the testbed's client has the transport, and the configuration that it was made of has not.
func TestThrough(t *testing.T) {
	c := &rest.Config{Host: "https://cloud"}
	if got := newReach().through(c); got.WrapTransport == nil || c.WrapTransport != nil {
		t.Error("the wrong configuration waits")
	}
}

type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = w.WriteString(string(a))
	return w.Result(), nil
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}
