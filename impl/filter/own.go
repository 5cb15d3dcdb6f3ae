package filter

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/quiet"
	"github.com/weir-edge/weir/impl/request"
)

// OwnConfig is what an Own is made of.
type OwnConfig struct {
	// Node is this node's name.
	Node string
	// Roots are the certificates, in PEM, that clients of the process before were shown; nil: none were.
	Roots []byte
	// KubeProxy is namespace/name of the ConfigMap from which kube-proxy has its kubeconfig; "" leaves it alone.
	KubeProxy string
	// Server is the URL that kube-proxy is to call. It is asked for with each answer.
	Server func() string
	// Untouched is told of the name of each ConfigMap that was passed as it is, because it does not hold what it should.
	Untouched func(name string)
	Clock     clock.WithTicker
	Logger    *slog.Logger
}

// Own makes the ConfigMaps that this node itself reads lead its pods to the hub: those named kube-root-ca.crt have the node's authority as well, and kube-proxy's has the hub's
// address. It has the machinery of the other filters: see the package comment.
type Own struct {
	topology
	OwnConfig
	rules []rule
}

// NewOwn makes one that shows what the process before did. SetRoots tells it what counts now.
func NewOwn(c OwnConfig) *Own {
	c.Clock, c.Logger = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{}), cmp.Or(c.Logger, slog.Default())
	o := &Own{OwnConfig: c, topology: newTopology(Config{Node: c.Node, Clock: c.Clock, Logger: c.Logger})}
	o.view.roots = string(c.Roots)
	log := quiet.New(c.Clock, c.Logger)
	untouched := func(name, namespace string, err error) {
		if c.Untouched != nil {
			c.Untouched(name)
		}
		log.Say(slog.LevelWarn, name, "a ConfigMap does not hold what it should, and this node's pods are shown it as it is: they may not trust their hub, or not call it",
			"namespace", namespace, "name", name, "err", err)
	}
	o.rules = append(o.rules, rooted{untouched})
	if c.KubeProxy != "" {
		namespace, name, _ := strings.Cut(c.KubeProxy, "/")
		o.rules = append(o.rules, led{namespace, name, c.Server, untouched})
	}
	return o
}

// SetRoots takes the certificates that pods trust besides the cloud's, in PEM. Watches that were shown others end with 410, so that their clients list.
func (o *Own) SetRoots(pem []byte) { o.change(func(v *view) { v.roots = string(pem) }) }

// Serve lets next answer a request of this node's own, through what has to be altered.
func (o *Own) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request, next func(http.ResponseWriter, *http.Request)) {
	if o == nil || !o.concerns(asked) {
		next(w, req)
		return
	}
	through(w, req, &o.topology, reading{asked: asked, use: use{"kubelet", configMaps}, rules: o.rules, client: clientOf(req, asked)}, next)
}

// concerns tells whether what is altered can be in the answer. Others are none of the clients that a view is kept of: a kubelet watches each ConfigMap by itself.
func (o *Own) concerns(asked *request.Request) bool {
	if asked.Resource != configMaps || !asked.Reads() || asked.Upgrade || asked.Subresource != "" {
		return false
	}
	name := asked.Name
	if name == "" {
		if s, err := fields.ParseSelector(asked.FieldSelector); err == nil {
			name, _ = s.RequiresExactMatch("metadata.name")
		}
	}
	_, ofProxy, _ := strings.Cut(o.KubeProxy, "/")
	return name == "" || name == rootsName || name == ofProxy
}
