package hub

import (
	"cmp"
	"net/http"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/role"
)

// openMirror makes the mirror of registries, if there is to be one.
func (h *Hub) openMirror() (err error) {
	c := pooldoor.MirrorConfig{
		MirrorOptions: h.Images, Node: h.NodeName, DataDir: h.DataDir, Net: h.Net, Lacks: h.lacks, Door: h.poolDoor,
		Away: func() bool { away, _ := h.cloud.IsAway(); return away }, Left: h.cloud.Left, Clock: h.clock, Logger: h.Logger,
	}
	if h.poolDoor != nil {
		c.Ways, c.Told = h.poolDoor.Images(h.coordinator), h.directory.Now
	}
	if h.mirror, err = pooldoor.NewMirror(c); err == nil {
		h.opened = append(h.opened, h.mirror.Close)
	}
	return err
}

// newDoor makes where requests of the node's clients come in, of all that the hub has.
func (h *Hub) newDoor() *door.Door {
	gate := access.NewGate(access.GateConfig{
		Anonymous: h.Anonymous, Rate: h.CallerRate, Burst: h.CallerRate * limit.CallerRest, Bytes: h.CallersMaxBytes,
		Cloud: h.cloud, Unproven: h.cloud.Prove(), Judge: h.judge, Called: h.callers.Note,
		Clock: h.clock, Count: counted(h.metrics.refusals), Logger: h.Logger,
	})
	callers := gate.Through(h.cloud.Way(uplink.ClassNode, uplink.AsCaller))
	review := access.Reviewer{
		AsCaller: gate.Through(h.cloud.Reviews()), AsNode: h.cloud.Way(uplink.ClassNode, uplink.AsNode), Stay: &access.Stay{},
	}
	authorizer := access.NewAuthorizer(access.AuthorizerConfig{
		Review: gate.Limited(review.Review), Cloud: h.cloud, Judge: h.judge, Clock: h.clock,
		Count: counted(h.metrics.reviews), Stay: review.Stay,
	})
	proxy := door.NewProxy(door.ProxyConfig{
		Node: h.NodeName, AsNode: h.asNode, NodePlace: h.cloud.NodePlace, AsCaller: h.discovery.Through(callers),
		Shelter: h.shelter, Judge: h.judge, Written: h.consistency, Demand: h.reads, Left: h.sources.Left, Clock: h.clock,
		Kubelet: shelter.NewKubelet(shelter.KubeletConfig{
			Node: h.NodeName, Address: cmp.Or(h.kubelet, shelter.KubeletAddress), Cert: h.atCloud, Dial: h.Net.DialContext,
			Store: h.store, Judge: h.judge, Away: h.cloud.IsAway, Learn: authorizer.Learn, Clock: h.clock, Logger: h.Logger,
		}),
		Logger: h.Logger,
	})
	beats := beat.NewBeats(beat.BeatsConfig{
		Node: h.NodeName, Cloud: h.cloud.Urgent(uplink.AsNode), Pool: h.pool.Seen(), Clock: h.clock, Logger: h.Logger,
		Count: counted(h.metrics.heartbeats), Roll: h.rollCall,
		Pass: func(w *answer.Recorder, req *http.Request, asked *request.Request) {
			w.Route = "cloud"
			proxy.Serve(w, req, door.Passage{Asked: asked, Who: access.Caller{Kind: access.ThisNode}})
		},
		Tell: h.tells(), Reads: func() digest.Reads { return h.reads.Reads(h.scope.Names()) },
	})
	return door.New(door.Config{
		Node: h.NodeName,
		Identifier: &access.Identifier{
			User: contract.NodeUserPrefix + h.NodeName, Roots: h.serving.callers, Own: h.own.signer(),
			Allowance: h.OfflineTokenAllowance, Now: h.time.Now,
		},
		Gate:       gate,
		Authorizer: authorizer,
		Stalls:     answer.NewStalls(h.clock, h.metrics.stalled.Inc, h.metrics.served, h.Logger),
		Sources:    h.sources, Consistency: h.consistency, Beats: beats, Proxy: proxy, Shelter: h.shelter, Demand: h.reads,
		Scope: h.scope, Overlay: h.overlay, Filters: h.filters, Own: h.filter, Answered: h.metrics.answered,
		Logger: h.Logger,
	})
}

// tells is what the hub tells the cloud of itself with heartbeats; nil: nothing, since there is no pool.
func (h *Hub) tells() func() digest.Digest {
	if h.poolDoor == nil {
		return nil
	}
	return (&membership.Account{
		Version: process.Version(), Started: h.clock.Now(), Cloud: h.cloud, Sources: h.sources, Consistency: h.consistency,
		Served: h.metrics.served, Images: h.mirror.Sum, Edges: h.prober.Failing,
		Role: func() role.Role { return h.self.Snapshot().Role }, Cause: h.pool.Cause,
	}).Digest
}
