package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"
)

// firstListSlices is of how many slices of a hundred endpoints the list is.
const firstListSlices = 200

// firstList measures what a list from one relay to another costs that begins with nothing, beside the same list by
// gzip, as kube-apiserver gives it.
func firstList(ctx context.Context, rounds int, progress func(string)) ([]Figure, error) {
	f := Figure{
		Name: "bytes of a first list as differences ÷ the same list by gzip", Unit: "ratio", Limit: firstListBytes,
		Detail: fmt.Sprintf("%d slices of 100 endpoints, protobuf, with TLS and HTTP/2", firstListSlices),
	}
	for i := range rounds {
		progress(fmt.Sprintf("first list: round %d of %d", i+1, rounds))
		diff, gzip, err := firstLists(ctx)
		if err != nil {
			return nil, err
		}
		f.Samples = append(f.Samples, float64(diff)/float64(gzip))
	}
	return []Figure{f}, nil
}

func firstLists(ctx context.Context) (diff, gzip int64, err error) {
	x, err := newFollowed(firstListSlices)
	if err != nil {
		return 0, 0, err
	}
	u, client, crossed, stop, err := relayServer(ctx, x.Relay)
	if err != nil {
		return 0, 0, err
	}
	defer stop()

	reader, feeder, err := newReader(u, client(), true)
	if err != nil {
		return 0, 0, err
	}
	reading, end := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return feeder.Run(reading) })
	err = reader.WaitVersion(ctx, x.version)
	diff = crossed.Load()
	end()
	if err = errors.Join(err, g.Wait()); err == nil {
		err = alike(x.Relay, reader)
	}
	if err != nil {
		return 0, 0, err
	}

	before := crossed.Load()
	list := *u
	list.Path = x.Resource().Path() + "/" + x.Resource().Resource
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, list.String(), http.NoBody)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client().Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, 0, err
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" {
		return 0, 0, fmt.Errorf("%s, %q: want a list by gzip", resp.Status, resp.Header.Get("Content-Encoding"))
	}
	return diff, crossed.Load() - before, nil
}
