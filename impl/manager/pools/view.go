package pools

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/coordinators"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// Seen is what is heard of a pool.
type Seen struct {
	Heard  int       // nodes, by themselves or through a peer
	CutOff int       // of these, through a peer
	Silent bool      // none is heard, for so long that it counts
	Since  time.Time // of the silence
	Unsure bool      // of some nodes nothing is known yet
}

// view is all that is known of a pool.
type view struct {
	name     string
	nodepool *nodepool.NodePool // nil: there is none
	own      *poolv1.Pool       // likewise
	nodes    []corev1.Node
	seen     Seen
	told     func(node string) (Entry, bool) // what its hub told
	scope    scope
	plan     plan
	placed   coordinators.Placed
	gate     directory.Gate // the same for all pools
}
