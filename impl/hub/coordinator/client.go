package coordinator

import (
	"context"
	"hash/fnv"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/role"
)

// Client is a client of the pool's coordinator: health, status and the two Leases of the pool. It uses one of its replicas at
// a time.
type Client struct {
	Config
	replicas []*Replica // in the order in which this hub prefers them
	Meter    uplink.Meter
	from     atomic.Pointer[string] // the address that the last connection came from

	// Only Healthz touches these.
	homeSeen time.Time // since when the first one is ready while another is used; zero: it is not
	stale    int       // probes in a row that found the one in use not to be fresh

	mu    sync.Mutex
	using *Use
}

// Do sends a request to the replica in use and reads the answer into out, unless that is nil. The status code is returned with
// errors about it.
func (c *Client) Do(ctx context.Context, method, uri string, in, out any) (code int, err error) {
	r, ctx, cancel := c.With(ctx)
	defer cancel()
	return r.do(ctx, method, uri, in, out)
}

// Status asks the replica in use how its caches are.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	_, err := c.Do(ctx, http.MethodGet, contract.StatusPath, nil, &s)
	return &s, err
}

// Doubt tells whether the cloud contradicts what the leader fed. refused: the coordinator does not want to hear it, also not later.
func (c *Client) Doubt(ctx context.Context, d contract.Doubt) (refused bool, err error) {
	code, err := c.Do(ctx, http.MethodPost, contract.DoubtPath, d, nil)
	return err != nil && code >= 400 && code < 500, err
}

// ReadLease reads a Lease; one that does not exist is no error.
func (c *Client) ReadLease(ctx context.Context, name string) (role.Record, error) {
	var l coordinationv1.Lease
	code, err := c.Do(ctx, http.MethodGet, LeasesPath+"/"+name, nil, &l)
	if code == http.StatusNotFound {
		return role.Record{}, nil
	}
	return FromLease(&l), err
}

// WriteLease writes a Lease if the stored one is still that which r was read from. conflict tells that it is not.
func (c *Client) WriteLease(ctx context.Context, name string, r role.Record, acquire bool) (written role.Record, conflict bool, err error) {
	now := metav1.NewMicroTime(c.Clock.Now())
	if acquire {
		r.AcquireTime = now.Time
	}
	r.RenewTime = now.Time
	l := ToLease(name, r)
	if name == contract.ElectionLease && r.Holder != "" {
		c.SetAddress(l)
	}
	method, path := http.MethodPut, LeasesPath+"/"+name
	if !r.Exists {
		method, path = http.MethodPost, LeasesPath
	}
	var out coordinationv1.Lease
	code, err := c.Do(ctx, method, path, l, &out)
	// A Lease that is gone: the coordinator has lost its disk.
	conflict = code == http.StatusConflict || code == http.StatusNotFound && r.Exists
	return FromLease(&out), conflict, err
}

// Local is the address that this hub has towards the coordinator.
func (c *Client) Local() string {
	if from := c.from.Load(); from != nil {
		return *from
	}
	return ""
}

// SetAddress tells in a Lease where this hub shows its relays.
func (c *Client) SetAddress(l *coordinationv1.Lease) {
	delete(l.Annotations, contract.PoolAddress)
	if address := c.Address(); address != "" {
		if l.Annotations == nil {
			l.Annotations = map[string]string{}
		}
		l.Annotations[contract.PoolAddress] = address
	}
}

// Use is the time during which a hub uses one replica.
type Use struct {
	*Replica
	left context.Context // ends when the hub goes to another one
	end  context.CancelFunc
}

// New spreads hubs over the replicas by the names of their nodes.
func New(cfg Config) *Client {
	c := &Client{Config: cfg}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(cfg.Node))
	first := int(sum.Sum32() % uint32(len(cfg.Servers)))
	for i := range cfg.Servers {
		c.replicas = append(c.replicas, newReplica(cfg, cfg.Servers[(first+i)%len(cfg.Servers)], &c.from, &c.Meter))
	}
	c.using = newUse(c.replicas[0])
	return c
}

func newUse(r *Replica) *Use {
	left, end := context.WithCancel(context.Background())
	return &Use{r, left, end}
}

// InUse is the replica that is used now.
func (c *Client) InUse() *Use {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.using
}

// With returns the replica that is used now and a context that ends when another is.
func (c *Client) With(ctx context.Context) (*Replica, context.Context, context.CancelFunc) {
	u := c.InUse()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(u.left, cancel)
	return u.Replica, ctx, func() {
		stop()
		cancel()
	}
}

// Waits opens a connection to the replica that is used now, for as long as it is. See impl/reverse.
func (c *Client) Waits(ctx context.Context) (net.Conn, context.Context, error) {
	u := c.InUse()
	conn, err := u.connect(ctx)
	return conn, u.left, err
}

// Renew follows a change of credentials.
func (c *Client) Renew() {
	for _, r := range c.replicas {
		r.resume.Forget()
		r.Transport.Renew()
	}
}

// Close ends the use of the replica in use.
func (c *Client) Close() {
	c.InUse().end()
	for _, r := range c.replicas {
		r.Transport.Close()
	}
}

// Name is what logs call the coordinator: where its replicas are.
func (c *Client) Name() string {
	hosts := make([]string, 0, len(c.replicas))
	for _, r := range c.replicas {
		hosts = append(hosts, r.URL.Host)
	}
	return strings.Join(hosts, ",")
}
