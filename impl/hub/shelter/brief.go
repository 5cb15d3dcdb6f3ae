package shelter

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// BriefConfig is what a Brief is made of. All of it is needed.
type BriefConfig struct {
	// Held is the object that a request is about, as the cloud last showed it; nil: no watch of the component brings it.
	Held func(component string, q *request.Request) *wire.Object
	// NodeStatusPeriod is how old the heartbeat times of a Node's conditions may be at the cloud; 0: none is kept from it.
	NodeStatusPeriod time.Duration
	Logger           *slog.Logger
}

// Brief makes requests brief. See the package comment.
type Brief struct {
	BriefConfig
	*deeds
	ledger
	count *prometheus.CounterVec
}

// NewBrief makes one for which all answers were right so far.
func NewBrief(c BriefConfig) *Brief {
	return &Brief{BriefConfig: c, deeds: newDeeds(), count: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Subsystem: "hub", Name: "brief_answers_total",
		Help: "Writes of this node's kubelet of which the cloud could answer the metadata alone, by resource and outcome: " +
			"brief, kept (the cloud was not asked), not held, other (not as kubelets write), conflict and refused (sent " +
			"again whole), failed, differs (what the hub made of a brief answer was wrong; from then on such requests are " +
			"sent whole).",
	}, []string{"resource", "outcome"})}
}

// Collector has the metrics.
func (b *Brief) Collector() prometheus.Collector { return b.count }

// Shown takes an object that a watch has shown as protobuf. It reports whether a brief answer had that version.
func (b *Brief) Shown(r request.Resource, o *wire.Object) bool {
	all := b.shown(id{r, o.Namespace, o.Name}, o)
	for _, a := range all {
		b.compare(a, o)
	}
	return len(all) > 0
}

// compare judges an answer by what the cloud shows at its version.
func (b *Brief) compare(a *due, o *wire.Object) {
	d := a.deed
	field := "one that is not known here"
	if shows, ok := d.decode(o.Raw); ok {
		if field = difference(a.becomes, shows); field == "" {
			return
		}
	}
	b.count.WithLabelValues(d.name, "differs").Inc()
	if d.off.CompareAndSwap(false, true) {
		b.Logger.Warn("an answer that the hub made for the kubelet is not what the cloud shows: from now on the cloud "+
			"answers such requests whole", "resource", d.name, "namespace", a.of.namespace, "name", a.of.name,
			"version", a.version, "field", field)
	}
}
