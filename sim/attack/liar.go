package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/sim/runtime"
)

// forgedAddress is where a liar sends the traffic of a Service.
const forgedAddress = "6.6.6.6"

// lied is a pool whose coordinator runs, and whose second node is the attacker; the hub of the first one starts later.
func lied(number string) *place {
	return &place{name: "lied-" + number, mode: runtime.Weir, nodes: 2, coordinators: 1, flags: swift()}
}

func liarAttacks() []Attack {
	truth := func(ctx context.Context, x *scene) error { return x.truth(ctx) }
	recovers := "the pool serves what the cloud has within two minutes, without hands"
	asLeader := func(number, goal, sent string, h relay.History, version uint64) Attack {
		return Attack{
			Number: number, Position: Leader, Goal: goal, Sent: sent, Expected: recovers,
			Control: "the pool has an honest leader then, which feeds it", place: lied(number),
			play: func(ctx context.Context, x *scene) error {
				if err := x.lie(ctx, h, version); err != nil {
					return err
				}
				return errors.Join(x.honest(ctx), truth(ctx, x))
			},
		}
	}
	fake := func(number string) *place {
		return &place{name: "fake-" + number, mode: runtime.Weir, nodes: 1, flags: swift()}
	}
	return []Attack{
		asLeader(
			"55", "what a pool holds can never be put right again", "it leads, and shows history 2^64-1; then an honest leader",
			relay.History{Number: math.MaxUint64}, 9e18,
		),
		asLeader(
			"55b", "what a pool holds can never be put right again",
			"it leads, and shows history 2^63 that has lost version 2^64-1",
			relay.History{Number: 1 << 63, Lost: math.MaxUint64},
			1,
		),
		asLeader(
			"56", "what a pool holds is ahead of all that the cloud will ever say",
			"it leads, and shows version 9e18 in the same history; then an honest leader", relay.History{}, 9e18,
		),
		{
			Number: "57", Position: Leader, Goal: "fill the memory of the pool",
			Sent:     "a list of 512 objects of 1 MiB that does not end",
			Expected: "refused, the coordinator's RssAnon grows by less than 256 MB",
			Control:  "an honest leader feeds it afterwards", place: lied("57"), play: endlessList,
		},
		{
			Number: "58", Position: Leader, Goal: "send the traffic of the pool elsewhere",
			Sent:     "a forged EndpointSlice, while a follower reaches the cloud",
			Expected: "the follower serves what the cloud has within two minutes",
			Control:  "the follower's hub serves", place: lied("58"), play: lyingLeader,
		},
		{
			Number: "59", Position: Leader, Goal: "forge what clients know of the API",
			Sent: "the document /apis with the cloud's ETag and another body", Expected: "clients get the cloud's",
			Control: "the follower's hub serves /apis", place: lied("59"), play: forgedDocument,
		},
		{
			Number: "60", Position: Member, Goal: "send the traffic of the pool elsewhere while it is cut off",
			Sent:     "where it shows the version after the present one, and a later history, with a forged slice",
			Expected: "a metric tells who said so, it makes nothing ready, and no other history is believed",
			Control:  "the hub serves what it had", place: led("60"), away: true,
			prepare: func(ctx context.Context, x *scene) error { return x.untilLed(ctx) }, play: forgedOffer,
		},
		{
			Number: "13", Position: Leader, Goal: "have a key of the attacker's taken for the cluster's",
			Sent: "a forged JWKS in the pool, a token signed with it, with Connection: Authorization, to a hub " +
				"that has no keys; while the cloud is away the token of another account signed so",
			Expected: "401 or 503",
			Control:  "the kubelet reads on", place: fake("13"), away: true, prepare: forgedKeys,
			asks: []ask{
				{as: "forged account", path: plainMap, codes: unknown},
				{as: "forged account", path: slices1, codes: unknown}, {as: "forged", path: "/version", codes: unknown},
			},
			controls: []ask{{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}},
		},
		{
			Number: "62", Position: Coordinator, Goal: "break hubs from within the pool",
			Sent:     "documents of 1 GiB, history 2^64-1 in answers, Leases called .. and a/b, an endless watch",
			Expected: "the hub's RssAnon grows by less than 128 MB, it serves what the cloud has",
			Control:  "the hub serves", place: fake("62"), play: lyingCoordinator,
		},
	}
}

// usurper takes the election for node 2, whose key the attacker has, while nobody leads, and tells where it shows what
// it forged.
func (x *scene) usurper(ctx context.Context, address string) error {
	holder := x.node(2) + "_liar"
	var a answer
	err := until(ctx, "the liar to be elected", func() bool {
		a = x.send(
			ctx,
			ask{
				as: "member 2", at: coordinatorDoor, method: http.MethodPost, path: poolLeases,
				body: telling(electionLease(holder), address),
			},
		)
		return a.code == http.StatusCreated
	})
	if err != nil {
		return fmt.Errorf("%w: %s %.200s", err, a, a.body)
	}
	return nil
}

// forgedRelay holds one slice, of the Service of the stage with another address.
func forgedRelay(h relay.History, version uint64) (*relay.Relay, error) {
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		return nil, err
	}
	r, err := relay.New(relay.Config{Resource: res, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	o, err := forgedSlice(version, 0)
	if err == nil {
		err = r.ReplaceIn(h, version, []*wire.Object{o})
	}
	return r, err
}

// keepRelay runs a relay until the returned function is called.
func keepRelay(ctx context.Context, r *relay.Relay) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.Run(ctx) }()
	return func() { cancel(); <-ended }
}

// forgedSlice is a slice with the address of the liar, and as many bytes of ballast.
func forgedSlice(version uint64, ballast int) (*wire.Object, error) {
	s := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop-1", Namespace: "a", UID: "6b6b6b6b-0000-0000-0000-000000000000",
			ResourceVersion: wire.FormatVersion(version),
			Labels:          map[string]string{discoveryv1.LabelServiceName: "shop"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{forgedAddress}}},
	}
	if ballast > 0 {
		s.Name = fmt.Sprintf("ballast-%d", version)
		s.Annotations = map[string]string{"ballast": strings.Repeat("x", ballast)}
	}
	raw, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	return wire.ParseObject(wire.Protobuf, raw)
}

// lie shows a forged state for a while, as a leader does, and is gone.
func (x *scene) lie(ctx context.Context, h relay.History, version uint64) error {
	r, err := forgedRelay(h, version)
	if err != nil {
		return err
	}
	l, err := x.lair(ctx, nil, r)
	if err != nil {
		return err
	}
	defer l.stop()
	if err := x.usurper(ctx, l.address); err != nil {
		return err
	}
	x.note("the liar is read: %t", within(ctx, 5*time.Second, l.read))
	within(ctx, 3*time.Second, func() bool { return false })
	return nil
}

// honest starts the hub of node 1, and waits until it leads.
func (x *scene) honest(ctx context.Context) error {
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	leads := within(ctx, patience, func() bool { return x.poolStatus(ctx).Leader == x.node(1) })
	x.note("an honest leader: %t", leads)
	return nil
}

// truth judges by what a client sees at the honest hub and at the coordinator: what the cloud has, and changes of it.
func (x *scene) truth(ctx context.Context) error {
	stamp := fmt.Sprintf("%d", time.Now().UnixNano())
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"attack":%q}}}`, stamp)
	if _, err := x.admin.DiscoveryV1().EndpointSlices("a").Patch(
		ctx, "shop-1", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{},
	); err != nil {
		return err
	}
	for _, q := range []ask{
		{as: "reader", at: hubDoor, path: slicesOfA}, {as: "viewer", at: coordinatorDoor, path: slicesOfA},
	} {
		var a answer
		right := within(ctx, 2*time.Minute, func() bool {
			a = x.send(ctx, q)
			return a.code == http.StatusOK && strings.Contains(a.body, "attack") && !strings.Contains(
				a.body, forgedAddress,
			)
		})
		x.judge(
			right, "at the %s: %s, the cloud's state: %t, the forged address: %t", q.at, a, right,
			strings.Contains(a.body, forgedAddress),
		)
	}
	var s poolStatus
	led := within(ctx, patience, func() bool { s = x.poolStatus(ctx); return s.Leader == x.node(1) && s.Ready })
	x.control(led, "leader %s, ready %t", s.Leader, s.Ready)
	return nil
}

// endlessList shows large objects without an end.
func endlessList(ctx context.Context, x *scene) error {
	const objects, size = 512, 1 << 20
	sent := make(chan int, 100)
	l, err := x.lair(ctx, func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != slices1 {
			return false
		}
		n := 0
		defer func() { sent <- n }()
		for i := range objects {
			o, err := forgedSlice(uint64(i+1), size)
			if err != nil {
				return true
			}
			kind := wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
			if _, err := w.Write(wire.AppendProtobufFrame(nil, "ADDED", kind, o.Raw)); err != nil {
				return true
			}
			n++
		}
		return true
	})
	if err != nil {
		return err
	}
	before, err := x.coordinator().Usage()
	if err == nil {
		err = x.usurper(ctx, l.address)
	}
	if err != nil {
		l.stop()
		return err
	}
	n := 0
	select {
	case n = <-sent:
	case <-time.After(time.Minute):
	}
	after, err := x.coordinator().Usage()
	l.stop()
	if err != nil {
		x.judge(false, "the coordinator: %v", err)
		return nil
	}
	grown := (after.RSSAnon - before.RSSAnon) >> 20
	x.judge(n > 0 && grown < 256, "%d objects sent, RssAnon +%d MB", n, grown)
	if err := x.honest(ctx); err != nil {
		return err
	}
	x.control(within(ctx, 2*time.Minute, func() bool { s := x.poolStatus(ctx); return s.Leader == x.node(1) && s.Ready }),
		"an honest leader feeds it")
	return nil
}

// lyingLeader goes on leading and feeding while the hub of node 1, a follower, reaches the cloud.
func lyingLeader(ctx context.Context, x *scene) error {
	r, err := forgedRelay(relay.History{}, 9e18)
	if err != nil {
		return err
	}
	l, err := x.lair(ctx, nil, r)
	if err != nil {
		return err
	}
	defer l.stop()
	if err := x.usurper(ctx, l.address); err != nil {
		return err
	}
	reign, abdicate := context.WithCancel(ctx)
	defer abdicate()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		x.reign(reign, l.address)
	}()
	defer func() { abdicate(); <-stopped }()
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	q := ask{as: "reader", path: slicesOfA}
	x.control(within(ctx, patience, func() bool { return x.send(ctx, q).code == http.StatusOK }),
		"the follower serves slices")
	at := func() (string, bool) {
		a := x.send(ctx, q)
		return a.String(), a.code == http.StatusOK && !strings.Contains(a.body, forgedAddress) && strings.Contains(
			a.body, "10.1.0.1",
		)
	}
	right := within(ctx, 2*time.Minute, func() bool { _, right := at(); return right })
	s := x.poolStatus(ctx)
	code, _ := at()
	x.judge(
		right, "leader %s; the follower, after two minutes at the most: %s, what the cloud has: %t", s.Leader, code,
		right,
	)
	return nil
}

// reign renews the election, and says that the pool is fresh, until ctx ends.
func (x *scene) reign(ctx context.Context, address string) {
	holder := x.node(2) + "_liar"
	for i := 0; ctx.Err() == nil; i++ {
		for _, name := range []string{contract.ElectionLease, contract.InformerSync} {
			l := x.lease(ctx, name)
			method, path := http.MethodPut, poolLeases+"/"+name
			if l.Name == "" {
				method, path = http.MethodPost, poolLeases
				_ = json.Unmarshal(
					[]byte(strings.Replace(electionLease(holder), `"`+contract.ElectionLease+`"`, `"`+name+`"`, 1)),
					&l,
				)
			}
			seconds, now := int32(15), metav1.NowMicro()
			if name == contract.ElectionLease {
				l.Annotations = map[string]string{contract.PoolAddress: address}
			}
			l.APIVersion, l.Kind, l.ManagedFields = "coordination.k8s.io/v1", "Lease", nil
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &holder, &seconds, &now
			data, _ := json.Marshal(l)
			x.send(ctx, ask{as: "member 2", at: coordinatorDoor, method: method, path: path, body: string(data)})
		}
		within(ctx, 2*time.Second, func() bool { return false })
	}
}

// forgedDocument shows a document with the cloud's own ETag and another body.
func forgedDocument(ctx context.Context, x *scene) error {
	accept := "Accept: " + documents.Accept
	real := x.send(ctx, ask{as: "reader", at: cloudDoor, path: "/apis", header: []string{accept}})
	forged := strings.Replace(real.body, "discovery.k8s.io", "forged.example.com", 1)
	l, err := x.lair(ctx, func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != contract.DocumentsPath || req.URL.Query().Get("path") != "/apis" {
			return false
		}
		w.Header().Set("Etag", real.header.Get("Etag"))
		w.Header().Set("Content-Type", real.header.Get("Content-Type"))
		_, _ = io.WriteString(w, forged)
		return true
	})
	if err != nil {
		return err
	}
	defer l.stop()
	if err := x.usurper(ctx, l.address); err != nil {
		return err
	}
	x.note("the document is asked for: %t",
		within(ctx, patience, func() bool { return <-l.asked == contract.DocumentsPath }))
	reign, abdicate := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() { defer close(stopped); x.reign(reign, l.address) }()
	defer func() { abdicate(); <-stopped }()
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	var a answer
	q := ask{as: "reader", path: "/apis", header: []string{accept}}
	x.control(within(ctx, patience, func() bool { a = x.send(ctx, q); return a.code == http.StatusOK }),
		"the hub answers /apis: %s", a)
	for range 5 {
		a = x.send(ctx, q)
		x.judge(
			!strings.Contains(a.body, "forged.example.com"), "/apis: %s, forged: %t", a,
			strings.Contains(a.body, "forged.example.com"),
		)
	}
	return nil
}

// forgedOffer shows a forged state to the coordinator of a pool that is cut off, and tells where in the Lease of its
// node.
func forgedOffer(ctx context.Context, x *scene) error {
	known := x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: slices1 + "?limit=1"})
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(known.body), &list); err != nil {
		return err
	}
	version, err := wire.ParseVersion(list.ResourceVersion)
	if err != nil {
		return err
	}
	counted := 0
	for _, c := range []struct {
		what    string
		h       relay.History
		version uint64
		forward bool // in the history that all know
	}{
		{"the next version", relay.History{}, version + 1, true}, {"a far version", relay.History{}, 9e18, true},
		{"a later history", relay.History{Number: 1}, version, false},
		{"the last history", relay.History{Number: math.MaxUint64}, 1, false},
	} {
		r, err := forgedRelay(c.h, c.version)
		if err != nil {
			return err
		}
		l, err := x.lair(ctx, nil, r)
		if err != nil {
			return err
		}
		x.tellPool(ctx, l.address)
		asked := within(ctx, time.Minute, func() bool {
			select {
			case path := <-l.asked:
				return path == contract.StatusPath
			default:
				return false
			}
		})
		refills := func() int {
			told := x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: "/metrics"})
			return countOf(told.body, `weir_coordinator_refills_total{node="`+x.node(2)+`"`)
		}
		if c.forward { // it is taken sooner or later
			within(ctx, time.Minute, func() bool { return refills() > counted })
		}
		within(ctx, 3*time.Second, func() bool { return false })
		l.stop()
		shown := x.send(ctx, ask{as: "reader", path: slicesOfA})
		lies := strings.Contains(shown.body, forgedAddress)
		now := refills()
		taken := now > counted
		counted = now
		// What one hub has heard last, others have to believe while nobody hears from the cloud, which puts it right when it
		// is back, see attacks 55 and 56.
		x.judge(c.forward && taken == lies || !c.forward && !taken,
			"%s: asked %t, taken by the metric: %t, clients see it: %t", c.what, asked, taken, lies)
	}
	ready := x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: "/readyz"})
	x.judge(ready.code != http.StatusOK, "the coordinator is ready by it: %t", ready.code == http.StatusOK)
	a := x.send(ctx, ask{as: "reader", path: slicesOfA})
	x.control(a.code == http.StatusOK, "the hub serves slices: %s", a)
	return nil
}

// countOf sums what metrics that begin so say.
func countOf(metrics, name string) (n int) {
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, name) {
			v, _ := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:]))
			n += v
		}
	}
	return n
}

// tellPool writes an address into the Lease of node 2, with its key.
func (x *scene) tellPool(ctx context.Context, address string) {
	lease := telling(
		fmt.Sprintf(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":%q,"namespace":%q},`+
			`"spec":{"holderIdentity":%q,"leaseDurationSeconds":40}}`,
			x.node(2), contract.NodeLeaseNamespace, x.node(2)), address)
	q := ask{as: "member 2", at: coordinatorDoor, method: http.MethodPost, path: nodeLeases, body: lease}
	a := x.send(ctx, q)
	if a.code == http.StatusConflict {
		q.method, q.path, q.header = http.MethodPatch, nodeLeases+"/"+x.node(2),
			[]string{"Content-Type: application/merge-patch+json"}
		a = x.send(ctx, q)
	}
	x.note("the address is told: %s", a)
}
