package shelter

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/store"
)

// KubeletAddress is where a kubelet serves.
const KubeletAddress = "127.0.0.1:10250"

// route is how metrics name what is answered here.
const route = "kubelet"

// KubeletConfig is what a Kubelet is made of. All of it is needed.
type KubeletConfig struct {
	Node    string
	Address string             // of loopback: the certificate there is not checked
	Cert    uplink.Certificate // that the hub shows
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Store   *store.Store // knows the pods of this node
	Judge   *identity.Judge
	Away    func() (yes bool, until context.Context) // the cloud is
	// Learn has the cloud asked whether a caller may do something, and waits for no answer.
	Learn  func(ctx context.Context, who access.Caller, header http.Header, a identity.Attributes)
	Clock  clock.PassiveClock
	Logger *slog.Logger
}
