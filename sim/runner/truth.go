package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/invariant"
)

// truthQuiet is for how long recorders of the truth that were cut off have to have a watch again.
const truthQuiet = 1500 * time.Millisecond

// askAgain is how long the recorders have to show what the cloud has before the cloud is asked again.
const askAgain = time.Second

// truth records a whole history of the cloud, over no link.
type truth struct {
	streams []*client.Stream
	views   map[client.Spec]*invariant.View // of all that clients have to show in the end; nil before that is known
	end     context.CancelFunc              // of the streams

	before *truth    // of the history that was lost when the cloud was restored; nil: this is the first
	began  time.Time // when the cloud was there again
	from   uint64    // the version that it was at
}

func recordTruth(ctx context.Context, admin *rest.Config, widgets bool) (*truth, error) {
	t := &truth{}
	ctx, t.end = context.WithCancel(ctx)
	specs := client.Specs("truth")
	if widgets {
		specs = append(specs, client.Spec{Client: "truth", Resource: client.Widgets, JSON: true, Labels: true})
	}
	for _, spec := range specs {
		s, err := client.Start(ctx, admin, spec)
		if err != nil {
			return nil, err
		}
		t.streams = append(t.streams, s)
	}
	return t, nil
}

// synced reports whether the recorders have begun: what happens from then on is in the history.
func (t *truth) synced() bool {
	for _, s := range t.streams {
		if !s.Recording.Synced() {
			return false
		}
	}
	return true
}

// catchUp waits until the recorders hold what the cloud holds: that is what clients have to show. Controllers of a real
// cluster may go on changing things; what comes later is judged as far as a client has seen it.
func (t *truth) catchUp(ctx context.Context, api kubernetes.Interface) error {
	if err := t.hold(ctx, api); err != nil {
		return err
	}
	t.views = map[client.Spec]*invariant.View{}
	return nil
}

// hold waits until the recorders hold what the cloud holds now. Recorders that lost an event never do: then the error
// tells which.
func (t *truth) hold(ctx context.Context, api kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	want, err := t.present(ctx, api)
	if err != nil {
		return err
	}
	poll := time.NewTicker(tick)
	defer poll.Stop()
	for asked := time.Now(); ; {
		var behind error
		for _, s := range t.streams {
			switch h, err := invariant.NewHistory(s.Recording.Ops()); {
			case err != nil:
				behind = err
			case !h.Holds(want[s.Spec.Resource]):
				behind = fmt.Errorf("the recorder of %s lacks changes", s.Spec.Resource)
			}
		}
		if behind == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the recorders of the truth do not show what the cloud has: %w; run again on a machine that is "+
				"not out of memory or stopped", errors.Join(behind, ctx.Err()))
		case <-poll.C:
		}
		if time.Since(asked) > askAgain { // a controller may have changed something meanwhile
			if want, err = t.present(ctx, api); err != nil {
				return err
			}
			asked = time.Now()
		}
	}
}

// present are the versions of all objects by resource and key.
func (t *truth) present(ctx context.Context, api kubernetes.Interface) (map[string]map[string]string, error) {
	endpointSlices, err := api.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	endpoints, err := api.CoreV1().Endpoints("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	want := map[string]map[string]string{client.EndpointSlices: {}, client.Endpoints: {}}
	for i := range endpointSlices.Items {
		want[client.EndpointSlices][endpointSlices.Items[i].Namespace+"/"+
			endpointSlices.Items[i].Name] = endpointSlices.Items[i].ResourceVersion
	}
	for i := range endpoints.Items {
		want[client.Endpoints][endpoints.Items[i].Namespace+"/"+endpoints.Items[i].Name] = endpoints.Items[i].ResourceVersion
	}
	if !slices.ContainsFunc(t.streams, func(s *client.Stream) bool { return s.Spec.Resource == client.Widgets }) {
		return want, nil
	}
	raw, err := api.Discovery().RESTClient().Get().AbsPath("/apis", client.WidgetVersion.Group,
		client.WidgetVersion.Version, client.Widgets).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var widgets client.WidgetList
	if err := json.Unmarshal(raw, &widgets); err != nil {
		return nil, err
	}
	want[client.Widgets] = map[string]string{}
	for i := range widgets.Items {
		want[client.Widgets][widgets.Items[i].Namespace+"/"+widgets.Items[i].Name] = widgets.Items[i].ResourceVersion
	}
	return want, nil
}

// through is the history as a stream's filter shows it.
func (t *truth) through(spec client.Spec) (*invariant.View, error) {
	key := client.Spec{Resource: spec.Resource, Selector: spec.Selector}
	if v := t.views[key]; v != nil {
		return v, nil
	}
	v, err := t.view(spec)
	if err == nil && t.views != nil {
		t.views[key] = v
	}
	return v, err
}

// view is all that the recorders have by now.
func (t *truth) view(spec client.Spec) (*invariant.View, error) {
	sel, err := labels.Parse(spec.Selector)
	if err != nil {
		return nil, err
	}
	for _, s := range t.streams {
		if s.Spec.Resource != spec.Resource {
			continue
		}
		h, err := invariant.NewHistory(s.Recording.Ops())
		if err != nil {
			return nil, err
		}
		if t.before != nil {
			if err := h.Since(t.from); err != nil {
				return nil, err
			}
		}
		return h.Through(sel), nil
	}
	return nil, fmt.Errorf("no truth of %s", spec.Resource)
}

// back waits until recorders that may have lost their watch have one again. Nothing is written meanwhile.
func (t *truth) back(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	poll := time.NewTicker(tick)
	defer poll.Stop()
	for {
		back := 0
		for _, s := range t.streams {
			if opened, open := s.Recording.Opened(); open && opened.After(since) && time.Since(opened) > truthQuiet {
				back++
			}
		}
		if back == len(t.streams) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the recorders of the truth do not come back: %w", ctx.Err())
		case <-poll.C:
		}
	}
}

// eras are all histories as a stream's filter shows them, the last one up to what the stream has reached by now, at the
// least to what it has to show.
func (t *truth) eras(s *client.Stream) ([]invariant.Era, error) {
	var eras []invariant.Era
	for past := t.before; past != nil; past = past.before {
		v, err := past.through(s.Spec)
		if err != nil {
			return nil, err
		}
		eras = append([]invariant.Era{{View: v, From: past.began}}, eras...)
	}
	due, err := t.through(s.Spec)
	if err != nil {
		return nil, err
	}
	all, err := t.view(s.Spec)
	if err != nil {
		return nil, err
	}
	return append(eras, invariant.Era{View: all.Until(max(due.Last(), s.Recording.Version())), From: t.began}), nil
}

// listed reports whether a stream has listed in this history: versions of an earlier one mean nothing in it.
func (t *truth) listed(s *client.Stream) bool {
	if t.before == nil {
		return true
	}
	ops := s.Recording.Ops()
	for i := len(ops) - 1; i >= 0 && ops[i].At.After(t.began); i-- {
		if ops[i].What == client.OpList || ops[i].What == client.OpInitialEnd {
			return true
		}
	}
	return false
}

// bytes are what the changes of a time are, as frames of a watch in protobuf.
func (t *truth) bytes(from, to time.Time) (n int64) {
	t.changes(from, to, func(op client.Op) { n += int64(op.Item.Size) + frameBytes })
	return n
}

// versions are how many there were of objects in a time.
func (t *truth) versions(from, to time.Time) (n int) {
	t.changes(from, to, func(client.Op) { n++ })
	return n
}

// changes are the events of a time.
func (t *truth) changes(from, to time.Time, each func(client.Op)) {
	if t.before != nil {
		t.before.changes(from, to, each)
	}
	for _, s := range t.streams {
		initial := false // events of a list are no changes
		for _, op := range s.Recording.Ops() {
			switch op.What {
			case client.OpOpen:
				initial = op.Initial
			case client.OpInitialEnd:
				initial = false
			case client.OpEvent:
				if !initial && op.At.After(from) && op.At.Before(to) {
					each(op)
				}
			}
		}
	}
}
