package filter

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/limit"
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
	// Pods is where the process before led the pods of this node, host:port; "": to the cloud.
	Pods string
	// Reads is told that the kubelet reads Services: what it reads so is what it tells the containers that it starts. nil:
	// nobody wants to know.
	Reads func()
	// Shown is told where pods are led by what the kubelet has of Services now, host:port; "": to the cloud. It has to
	// return soon. nil: nobody wants to know.
	Shown func(address string)
	// Untouched is told of the name of each ConfigMap that was passed as it is, because it does not hold what it should.
	Untouched func(name string)
	Clock     clock.WithTicker
	Logger    *slog.Logger
}

// thisNode is in the place of a component that proves who it is.
const thisNode = "this node"

// Own makes what this node itself reads lead its pods to the hub: ConfigMaps named kube-root-ca.crt have the node's
// authority as well, kube-proxy's has the hub's address, and so has the Service default/kubernetes. It has the
// machinery of the other filters: see the package comment.
type Own struct {
	topology           // of ConfigMaps
	services *topology // of Services: a change of the one ends no watch of the other
	OwnConfig
	rules []rule
}

// NewOwn makes one that shows what the process before did. SetRoots and SetPods tell it what is valid now.
func NewOwn(c OwnConfig) *Own {
	c.Clock, c.Logger = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{}), cmp.Or(c.Logger, slog.Default())
	of := Config{Node: c.Node, Clock: c.Clock, Logger: c.Logger}
	beside := newTopology(of)
	o := &Own{OwnConfig: c, topology: newTopology(of), services: &beside}
	o.view.roots = string(c.Roots)
	o.services.view.pods, _ = newMaster(c.Pods) // "": the zero value
	if c.Shown != nil {
		o.services.shown = func(v *view) { c.Shown(v.pods.String()) }
	}
	log := limit.NewQuiet(c.Clock, c.Logger)
	untouched := func(name, namespace string, err error) {
		if c.Untouched != nil {
			c.Untouched(name)
		}
		log.Say(slog.LevelWarn, name,
			"a ConfigMap does not hold what it should, and this node's pods are shown it as it is: they may not trust their "+
				"hub, or not call it",
			"namespace", namespace, "name", name, "err", err)
	}
	o.rules = append(o.rules, rooted{untouched})
	if c.KubeProxy != "" {
		namespace, name, _ := strings.Cut(c.KubeProxy, "/")
		o.rules = append(o.rules, led{namespace, name, c.Server, untouched})
	}
	return o
}

// SetRoots takes the certificates that pods trust besides the cloud's, in PEM. Watches that were shown others end with
// 410, so that their clients list.
func (o *Own) SetRoots(pem []byte) { o.change(func(v *view) { v.roots = string(pem) }) }

// SetPods leads the containers that start from now on to a hub at host:port; "": to the cloud. Watches of Services that
// were shown another address end with 410.
func (o *Own) SetPods(address string) {
	to, _ := newMaster(address)
	o.services.change(func(v *view) { v.pods = to })
}

// Serve lets next answer a request of this node's own, through what has to be altered.
func (o *Own) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request,
	next func(http.ResponseWriter, *http.Request)) {
	if o == nil || !plain(asked) {
		next(w, req)
		return
	}
	q := reading{asked: asked, use: use{thisNode, asked.Resource}}
	of := &o.topology
	switch {
	case asked.Resource == services:
		if o.Reads != nil && asked.Name == "" {
			o.Reads()
		}
		of, q.rules = o.services, []rule{toHub{}}
	case o.concerns(asked):
		q.rules = o.rules
	default:
		next(w, req)
		return
	}
	q.client = clientOf(req, asked)
	through(w, req, of, q, next)
}

// concerns reports whether a ConfigMap that is altered can be in the answer of a read. Others are none of the clients
// that a view is kept of: a kubelet watches each ConfigMap by itself.
func (o *Own) concerns(asked *request.Request) bool {
	if asked.Resource != configMaps || !plain(asked) {
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
