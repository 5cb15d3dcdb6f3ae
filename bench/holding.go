package bench

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	weirpki "github.com/weir-edge/weir/impl/pki"
)

// tell has a Node say what its hub holds after a renewal: as a hub does, and each time something else.
func (c *certified) tell(ctx context.Context, by http.RoundTripper) error {
	c.told++
	begin := time.Now().UTC().Truncate(time.Second).Add(time.Duration(c.told) * time.Second)
	holds := digest.Holding{Trust: c.told, Certificates: map[string]digest.Life{}}
	for _, k := range []weirpki.Kind{weirpki.Hub, weirpki.HubAtCloud} {
		holds.Certificates[string(k)] = digest.Life{Begin: begin, End: begin.Add(weirpki.Must(k).Life.Usual), Renews: true}
	}
	node := certifiedPool + "-1"
	t := digest.Teller{
		Node: node, Cloud: by, Read: func() digest.Holding { return holds }, Clock: clock.RealClock{},
		Logger: slog.New(slog.DiscardHandler),
	}
	return c.during(ctx, t.Run, "the Node to say what its hub holds", func() bool {
		n, err := c.admin.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		return err == nil && n.Annotations[contract.HoldsAnnotation] == holds.Text()
	})
}
