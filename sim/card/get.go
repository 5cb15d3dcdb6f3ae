package card

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/runtime"
)

// asked is one kind of get.
type asked struct {
	name  string
	path  func(node string) string
	count int
}

// gets times gets request by request in turn, so that what else the machine does meets all sides alike. Each round asks
// the hubs of other nodes: two processes of one program differ by some per cent for as long as they run, by where their
// memory and their connections happen to be, and no number of samples of one shows that.
func (b *bench) gets(ctx context.Context) error {
	kinds := []asked{
		{"answered by a relay", func(string) string {
			return "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices/" + sliceName(1) + "?resourceVersion=0"
		}, gets},
		{"passed through to the cloud", func(node string) string { return "/api/v1/nodes/" + node }, passed},
	}
	for round := range rounds {
		for _, kind := range kinds {
			for range 50 { // connections and code are warm
				for _, s := range b.sides {
					if _, err := get(ctx, s.door(round), kind.path); err != nil {
						return err
					}
				}
			}
		}
		for batch := range b.Batches {
			for _, kind := range kinds {
				if err := b.batch(ctx, kind, round, batch); err != nil {
					return err
				}
			}
		}
		b.Progress(fmt.Sprintf("card: gets, round %d of %d", round+1, rounds))
	}
	return nil
}

func (b *bench) batch(ctx context.Context, kind asked, round, batch int) error {
	var took [3][]float64
	var cpu [3]float64
	used := func(s *side) (float64, error) {
		part, err := b.site.Part(runtime.HubOf(s.door(round).node))
		if err != nil {
			return 0, err
		}
		u, err := part.Usage()
		return u.CPU.Seconds(), err
	}
	for i, s := range b.sides {
		v, err := used(s)
		if err != nil {
			return err
		}
		cpu[i] = v
	}
	for n := range kind.count {
		for k := range b.sides {
			i := (k + n + batch) % len(b.sides) // who is first takes turns
			d, err := get(ctx, b.sides[i].door(round), kind.path)
			if err != nil {
				return err
			}
			took[i] = append(took[i], d.Seconds())
		}
	}
	for i, s := range b.sides {
		v, err := used(s)
		if err != nil {
			return err
		}
		slices.Sort(took[i])
		b.book.add(meaning{"get", "time of a get " + kind.name, "s", change.Time}, i, round, took[i][len(took[i])/2])
		if kind.count == gets {
			b.book.add(meaning{"get", fmt.Sprintf("CPU of the hub for %d gets %s", kind.count, kind.name), "s", change.Time}, i,
				round, v-cpu[i])
		}
	}
	return nil
}

// door is the one that is asked in a round.
func (s *side) door(round int) nodeDoor { return s.doors[round%len(s.doors)] }

// get reads an object through a hub.
func get(ctx context.Context, at nodeDoor, path func(node string) string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url+path(at.node), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	began := time.Now()
	resp, err := at.client.Do(req)
	if err != nil {
		return 0, err
	}
	body, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	if closed := resp.Body.Close(); err == nil {
		err = closed
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: GET %s: %s: %.200s", at.node, req.URL.Path, resp.Status, body)
	}
	return took, err
}
