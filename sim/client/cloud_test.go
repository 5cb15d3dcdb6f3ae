package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/invariant"
	"github.com/weir-edge/weir/sim/workload"
)

// specs are streams of all kinds, by streaming lists and by lists.
func specs() (all []client.Spec) {
	for _, kind := range []string{"kube-proxy", "coredns", "json", "reference"} {
		for _, s := range client.Specs(kind) {
			all = append(all, s)
			s.NoWatchList = !s.NoWatchList
			all = append(all, s)
		}
	}
	return all
}

// eventually polls until ok, and fails the test with what is said after half a minute.
func eventually(t *testing.T, ok func() (done bool, what string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		done, what := ok()
		if done {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatal(what)
		}
	}
}

// TestRealCloud: the recordings of all kinds of clients of the real kube-apiserver, over a link that breaks all
// connections at times, pass the judge under churn; and so does what their informers hold in the end.
func TestRealCloud(t *testing.T) {
	c, binaries := cloudtest.Start(t, cloud.Kubectl)
	api, err := workload.NewClient(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var streams []*client.Stream
	defer func() {
		cancel()
		for _, s := range streams {
			s.Wait()
		}
	}()
	open := func(cfg string, specs ...client.Spec) []*client.Stream {
		config := c.RESTConfig()
		if cfg != "" {
			config.Host = "https://" + cfg
		}
		opened, err := client.Open(ctx, config, specs...)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, opened...)
		return opened
	}
	truth := open("", client.Specs("truth")...)
	eventually(t, func() (bool, string) {
		return truth[0].Recording.Synced() && truth[1].Recording.Synced(), "the recorders of the truth have no list"
	})
	w := workload.New(workload.Config{Seed: 7, Services: 6, Endpoints: 100, Nodes: []string{"harbour-1"}})
	if err := w.Fill(ctx, api, nil); err != nil {
		t.Fatal(err)
	}

	uplink := newBreaker(t, c.Addr())
	var clients []*client.Stream
	join := func() {
		for _, s := range specs() {
			clients = append(clients, open(uplink.Addr().String(), s)...)
		}
	}
	join()
	for round := range 4 {
		if err := w.Churn(ctx, api, 60, 40, nil, nil); err != nil {
			t.Fatal(err)
		}
		uplink.breakAll()
		if round == 1 {
			join() // in the middle of it
		}
	}
	views := map[client.Spec]*invariant.View{}
	through := func(s client.Spec) (*invariant.View, error) {
		key := client.Spec{Resource: s.Resource, Selector: s.Selector}
		if v := views[key]; v != nil {
			return v, nil
		}
		sel, err := labels.Parse(s.Selector)
		if err != nil {
			return nil, err
		}
		for _, tr := range truth {
			if tr.Spec.Resource == s.Resource {
				h, err := invariant.NewHistory(tr.Recording.Ops())
				if err != nil {
					return nil, err
				}
				views[key] = h.Through(sel)
			}
		}
		return views[key], nil
	}
	eventually(t, func() (bool, string) {
		clear(views)
		for _, s := range append(clients, truth...) {
			v, err := through(s.Spec)
			if err != nil {
				return false, err.Error()
			}
			if n := v.Behind(s.Recording.Version()); n > 0 || !s.Recording.Synced() {
				ops := s.Recording.Ops()
				return false, fmt.Sprintf("%+v is %d events behind; last it saw %v", s.Spec, n, ops[max(len(ops)-3, 0):])
			}
			if d := v.Stored(s.Stored()); len(d) > 0 {
				return false, fmt.Sprintf("%+v holds in the end: %v", s.Spec, d)
			}
		}
		return true, ""
	})
	for _, s := range clients {
		v, err := through(s.Spec)
		if err != nil {
			t.Fatal(err)
		}
		got := invariant.Judge(v, s.Recording.Ops())
		for _, x := range got.Violations {
			t.Errorf("%+v: %s", s.Spec, x)
		}
		if got.Resumes < 1 || got.Errors+got.Relists > 0 {
			t.Errorf("%+v: %d resumes, %d errors, %d re-lists by %v", s.Spec, got.Resumes, got.Errors, got.Relists, got.Causes)
		}
	}
	kubectl(t, c, binaries[cloud.Kubectl])
}

// kubectl with a certificate and with a token shows the same, and not nothing.
func kubectl(t *testing.T, c *cloud.Cloud, path string) {
	t.Helper()
	args := []string{"get", "endpointslices", "--all-namespaces", "--no-headers"}
	want, err := client.Kubectl(t.Context(), path, c.RESTConfig(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.ClientToken(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host: c.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.RESTConfig().CAData},
	}
	got, err := client.Kubectl(t.Context(), path, config, t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CompareTables(got, want); err != nil || strings.Count(got, "\n") < 6 {
		t.Errorf("kubectl shows: %v\n%s", err, got)
	}
	config.BearerToken = "wrong"
	if _, err := client.Kubectl(t.Context(), path, config, t.TempDir(), args...); err == nil ||
		!strings.Contains(err.Error(), "logged in") {
		t.Errorf("kubectl with a wrong token: %v", err)
	}
}
