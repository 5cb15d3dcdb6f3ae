package overlay

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/process"
)

// Run states and reads until ctx ends.
func (o *Overlay) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		timer := o.Clock.NewTimer(o.step(ctx))
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-o.poke:
			process.Pause(ctx, o.Clock, gathers)
		}
		timer.Stop()
	}
	return nil
}

// step does what is due, and returns how long nothing else is.
func (o *Overlay) step(ctx context.Context) (wait time.Duration) {
	away, _ := o.Away()
	own := o.corrections(away)
	x := &o.outage
	first := !x.any
	if x.any = true; !x.on {
		if !away && (!first || !o.behind(own)) {
			return o.hello(ctx, own)
		}
		o.begin(first)
	}
	switch now := o.Clock.Now(); {
	case away:
		x.back, x.released = time.Time{}, false
	case x.back.IsZero():
		x.back = now
	case !x.released && now.Sub(x.back) >= returns:
		x.released = true
		o.mu.Lock()
		o.set.Release()
		o.mu.Unlock()
	}
	read := false
	if !x.released {
		own = append(own, o.lagging(away, own)...)
		own = append(own, o.standing(away, own)...)
		read = o.exchange(ctx, own)
	}
	o.expire(away, read)
	o.tell()
	if !away && o.over(own) {
		x.on, x.hello = false, o.Clock.Now().Add(helloEvery)
		return helloEvery
	}
	if len(o.nodes) > many {
		return readMany
	}
	return readEvery
}

// behind reports, when the hub starts, whether there was an outage, and the cloud does not say yet what is true.
func (o *Overlay) behind(own []moved.Correction) bool {
	for pod := range o.Pods {
		if moved.Marked(pod) {
			return true
		}
	}
	return len(own) > 0 || len(o.lagging(false, own)) > 0
}

// corrections are what waits of this node, and what its last boot has ended.
func (o *Overlay) corrections(away bool) (all []moved.Correction) {
	if !away && len(o.outage.rebooted) > 0 && !o.Unknown() { // the kubelet's word is on its way there
		o.outage.rebooted = nil
	}
	for pod, status := range o.Statuses {
		if !equality.Semantic.DeepEqual(o.outage.rebooted[pod.UID], status) {
			delete(o.outage.rebooted, pod.UID)
		}
		_, ended := o.outage.rebooted[pod.UID]
		if c, ok := moved.FromStatus(pod, status); ok && !ended && pod.Spec.NodeName == o.Node {
			all = append(all, c)
		}
		if o.outage.waited == nil {
			o.outage.waited = map[types.UID]*corev1.Pod{}
		}
		pod.Status = *status
		o.outage.waited[pod.UID] = pod
	}
	if len(o.outage.rebooted) == 0 {
		return all
	}
	for pod := range o.Pods {
		_, ended := o.outage.rebooted[pod.UID]
		if c, ok := moved.Rebooted(pod); ok && ended && pod.Spec.NodeName == o.Node {
			all = append(all, c)
		}
	}
	return all
}

// standing are the pods of which nothing waits, and which are ready: their kubelet said so, and the cloud may say
// otherwise, for it did not hear it. When it is back it says so of all nodes at once. Nobody would be sent to any pod
// of the pool until the kubelets have said it again.
func (o *Overlay) standing(away bool, own []moved.Correction) (all []moved.Correction) {
	x := &o.outage
	until := o.Clock.Now()
	if !away {
		until = x.back
	}
	if until.Sub(x.began) < marks || o.Clock.Since(until) >= stands {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for pod := range o.Pods {
		_, ended := x.rebooted[pod.UID]
		c, ok := moved.Stands(pod)
		if !ok || ended || pod.Spec.NodeName != o.Node || corrects(own, pod.UID) {
			continue
		}
		if o.set.Moved(o.Node, pod.UID) { // the slices of others may still have its former address
			if c, ok = said(o.speaker.last, pod); !ok {
				continue
			}
		}
		all = append(all, c)
	}
	return all
}

// said is what a statement says of a pod that is ready and has moved to where the cloud has it.
func said(s moved.Statement, pod *corev1.Pod) (c moved.Correction, ok bool) {
	is, _ := moved.FromStatus(pod, &pod.Status)
	for _, c := range s.Corrections {
		if c.UID == pod.UID && c.Ready && !c.Stays && slices.Equal(c.Addresses, is.Addresses) {
			return c, true
		}
	}
	return c, false
}

// begin begins an outage. What was known of one before is forgotten. A hub that starts in one does not know how long it
// has lasted.
func (o *Overlay) begin(starts bool) {
	began := o.Clock.Now()
	if starts {
		began = began.Add(-marks)
	}
	o.outage = outage{
		on: true, any: true, began: began, waited: o.outage.waited, greeted: o.outage.greeted, rebooted: o.outage.rebooted,
	}
	o.Ways.Forget()
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.set.Members(nil) // which is no bound of nodes
	o.members()
}

// exchange states what is new or due, and takes what others state. read: all that the pool has was read.
func (o *Overlay) exchange(ctx context.Context, own []moved.Correction) (read bool) {
	say := o.speaker.say
	if o.speaker.news(own) || o.Clock.Since(o.speaker.at) >= moved.Every {
		o.state(own)
	} else {
		say = func(whole bool) *moved.Signed {
			if !whole {
				return nil
			}
			return o.speaker.say(true)
		}
	}
	all, read := o.Ways.Exchange(ctx, say)
	o.hear(all)
	if o.Ways.Behind() {
		more, again := o.Ways.Exchange(ctx, func(whole bool) *moved.Signed {
			if !whole {
				return nil
			}
			return o.speaker.say(true)
		})
		o.hear(more)
		read = read && again
	}
	return read
}

// state makes a statement of this node. What it says counts here at once.
func (o *Overlay) state(own []moved.Correction) {
	left, err := o.speaker.state(own, o.says())
	switch {
	case errors.Is(err, errNoCertificate): // then the hub has nothing of its pool
		return
	case err != nil:
		o.quiet.Say(slog.LevelError, "state", "what kubelets say of moved pods cannot be signed", "err", err)
		return
	case left > 0:
		o.quiet.Say(slog.LevelWarn, "left", "more pods have moved than a node can say", "left", left, "most", moved.MaxPods)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if changed, err := o.set.Take(o.speaker.last); changed && err == nil {
		o.publish()
	}
}

// hear takes what others state.
func (o *Overlay) hear(all []moved.Signed) {
	var states []moved.Statement
	for _, s := range all {
		if st, ok := o.open(s); ok {
			states = append(states, st)
		}
	}
	if !o.outage.on {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	any := false
	for _, st := range states {
		changed, err := o.set.Take(st)
		switch any = any || changed; {
		case err == nil:
			o.metrics.statements.WithLabelValues("taken").Inc()
		case errors.Is(err, moved.ErrOld): // it came by another desk
			o.metrics.statements.WithLabelValues("old").Inc()
		case errors.Is(err, moved.ErrLacks):
			o.metrics.statements.WithLabelValues("lacks").Inc()
			o.Ways.Forget()
		}
	}
	if any {
		o.publish()
	}
}

// open reads a statement of another node, and notes that there is one.
func (o *Overlay) open(s moved.Signed) (moved.Statement, bool) {
	node, _, _ := strings.Cut(s.Text, " ")
	if len(s.Chain) == 0 {
		s.Chain = o.nodes[node].chain
	}
	st, err := s.Open(o.Pool, o.Verify)
	if err != nil {
		o.metrics.statements.WithLabelValues("refused").Inc()
		o.quiet.Say(slog.LevelWarn, "refused", "what a node says of its moved pods does not count", "node", node, "err", err)
		return st, false
	}
	_, known := o.nodes[st.Node]
	if !known && len(o.nodes) >= moved.MaxNodes || st.Node == o.Node {
		o.metrics.statements.WithLabelValues("stranger").Inc()
		return st, false
	}
	if o.nodes[st.Node] = (peer{s.Chain, o.now()}); !known {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.members()
		o.remember()
	}
	return st, true
}

// remember keeps which nodes there are. mu is held.
func (o *Overlay) remember() {
	names := make([]string, 0, len(o.nodes))
	for node := range o.nodes {
		names = append(names, node)
	}
	slices.Sort(names)
	if !slices.Equal(names, o.file.kept.Nodes) {
		o.file.kept.Nodes = names
		o.file.write()
	}
}

// expire has the set follow time and the cloud.
func (o *Overlay) expire(away, read bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	unheard := o.unheard()
	changed := o.set.Away(away && unheard > freshFor, unheard)
	if read || !away {
		changed = o.set.Expire(o.now()) || changed
	}
	if changed {
		o.publish()
	}
	if o.set.Leaving() {
		o.settle()
	}
}

// unheard is for how long the pool has heard nothing of the cloud.
func (o *Overlay) unheard() time.Duration {
	if r := o.Relay(slicesOf); r != nil {
		s := r.Status()
		if age, ok := s.Age(o.Clock.Now()); ok {
			return age
		}
	}
	return math.MaxInt64
}

// tell logs when corrections begin and end.
func (o *Overlay) tell() {
	o.mu.Lock()
	idle, pods := o.set.Idle(), o.set.Len()
	o.mu.Unlock()
	switch {
	case idle == !o.outage.told:
	case idle:
		o.Logger.Info("EndpointSlices and Endpoints are shown as the cloud has them again")
	default:
		o.Logger.Warn("the cloud is away: EndpointSlices and Endpoints are shown with what kubelets of the pool say of "+
			"their pods", "pods", pods, "nodes", len(o.nodes))
	}
	o.outage.told = !idle
}

// over reports whether an outage is over, now that the cloud is there.
func (o *Overlay) over(own []moved.Correction) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.set.Idle() && o.set.Len() == 0 && (len(own) == 0 || o.outage.released)
}

// hello says that this node is there, and hears who else is.
func (o *Overlay) hello(ctx context.Context, own []moved.Correction) (wait time.Duration) {
	if wait = o.outage.hello.Sub(o.Clock.Now()); wait > 0 {
		return wait
	}
	first := !o.outage.greeted // others may start at the same time
	o.Ways.Forget()
	o.state(own)
	all, ok := o.Ways.Exchange(ctx, o.speaker.say)
	o.hear(all)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.outage.greeted = ok || !first; {
	case !o.outage.greeted:
		wait = moved.Every
	case first || !ok:
		wait = helloAgain
	default:
		wait = helloEvery
	}
	maps.DeleteFunc(o.nodes, func(node string, p peer) bool {
		return ok && node != o.Node && o.now()-p.heard > forgets
	})
	o.members()
	o.remember()
	if !first { // whoever read the store has come to the cloud since
		clear(o.file.kept.Stored)
	}
	o.prune()
	o.outage.hello = o.Clock.Now().Add(wait)
	return wait
}
