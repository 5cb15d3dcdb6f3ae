package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source"
)

// Of how many slices of a hundred endpoints the lists are, and how many of the second one have changed when nobody
// remembers what happened.
const (
	firstListSlices = 200
	forgottenSlices = 1000
	forgottenOthers = forgottenSlices / 100
)

// firstList measures what a list from one relay to another costs that begins with nothing, beside the same list by
// gzip, as kube-apiserver gives it, and what it costs to go on after 410.
func firstList(ctx context.Context, rounds int, progress func(string)) ([]Figure, error) {
	f := Figure{
		Name: "bytes of a first list as differences ÷ the same list by gzip", Unit: "ratio", Limit: firstListBytes,
		Detail: fmt.Sprintf("%d slices of 100 endpoints, protobuf, with TLS and HTTP/2", firstListSlices),
	}
	forgotten := Figure{
		Name: "bytes after 410 with one object in a hundred changed ÷ a list by gzip", Unit: "ratio", Limit: forgottenBytes,
		Detail: fmt.Sprintf("%d slices, of which %d are others; the connection, and its TLS, are not new", forgottenSlices,
			forgottenOthers),
	}
	for i := range rounds {
		progress(fmt.Sprintf("first list: round %d of %d", i+1, rounds))
		first, _, gzip, err := firstLists(ctx, firstListSlices)
		if err != nil {
			return nil, err
		}
		f.Samples = append(f.Samples, float64(first)/float64(gzip))
		_, after, gzip, err := firstLists(ctx, forgottenSlices)
		if err != nil {
			return nil, err
		}
		forgotten.Samples = append(forgotten.Samples, float64(after)/float64(gzip))
	}
	return []Figure{f, forgotten}, nil
}

// firstLists returns the bytes of a first list, of going on after 410, and of a list by gzip.
func firstLists(ctx context.Context, slices int) (first, after, gzip int64, err error) {
	x, err := newFollowed(slices)
	if err != nil {
		return 0, 0, 0, err
	}
	u, client, crossed, stop, err := relayServer(ctx, x.Relay)
	if err != nil {
		return 0, 0, 0, err
	}
	defer stop()
	reader, feeder, err := newReader(u, client(), true)
	if err != nil {
		return 0, 0, 0, err
	}
	reading, end := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return feeder.Run(reading) })
	err = reader.WaitVersion(ctx, x.version)
	first = crossed.Load()
	if err == nil {
		err = alike(x.Relay, reader)
	}
	if err == nil {
		after, err = goOn(ctx, x, reader, feeder)
	}
	end()
	if err = errors.Join(err, g.Wait()); err == nil {
		gzip, err = gzipped(ctx, x.Relay, u, client(), crossed)
	}
	return first, after, gzip, err
}

// goOn has a reader go on at a relay that remembers nothing, and counts the bytes.
func goOn(ctx context.Context, x *followed, reader *relay.Relay, feeder *source.Feeder) (after int64, err error) {
	feeder.Use(nil)
	if err := waitFor(ctx, nil, func() bool { return x.Status().Watchers == 0 }); err != nil {
		return 0, err
	}
	for range len(x.slices) / 100 {
		if err := x.change(); err != nil {
			return 0, err
		}
	}
	later, err := newRelay()
	if err == nil {
		err = later.Replace(x.version, slices.Collect(x.Objects()))
	}
	if err != nil {
		return 0, err
	}
	u, newClient, crossed, stop, err := relayServer(ctx, later)
	if err != nil {
		return 0, err
	}
	defer stop()
	client := newClient()
	if _, err := gzipped(ctx, later, u, client, crossed); err != nil { // the connection is there
		return 0, err
	}
	before := crossed.Load()
	feeder.Use(upstream(u, client, true))
	if err := reader.WaitVersion(ctx, x.version); err != nil {
		return 0, err
	}
	after = crossed.Load() - before
	if s := feeder.Status(); s.Resyncs != 1 || s.Mismatches != 0 {
		return 0, fmt.Errorf("it has not gone on as after 410: %+v", s)
	}
	return after, alike(later, reader)
}

// gzipped counts the bytes of a list by gzip.
func gzipped(ctx context.Context, x *relay.Relay, u *url.URL, client *http.Client, crossed *atomic.Int64) (
	int64, error) {
	before := crossed.Load()
	list := *u
	list.Path = x.Resource().Path() + "/" + x.Resource().Resource
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, list.String(), http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" {
		return 0, fmt.Errorf("%s, %q: want a list by gzip", resp.Status, resp.Header.Get("Content-Encoding"))
	}
	return crossed.Load() - before, nil
}
