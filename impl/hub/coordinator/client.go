package coordinator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

// Client is a client of the pool's coordinator: health, status and the two Leases of the pool. It uses one of its
// replicas at a time.
type Client struct {
	Config
	Meter uplink.Meter
	from  atomic.Pointer[string] // the address that the last connection came from

	// Only Healthz touches these.
	homeSeen time.Time // since when the first one is ready while another is used; zero: it is not
	stale    int       // probes in a row that found the one in use not to be fresh

	mu       sync.Mutex
	replicas []*Replica // in the order in which this hub prefers them
	using    *Use
	shunned  map[string]time.Time // leader hubs, by node, and until when
}

// Do sends a request to the replica in use and reads the answer into out, unless that is nil. The status code is
// returned with errors about it.
func (c *Client) Do(ctx context.Context, method, uri string, in, out any) (code int, err error) {
	r, ctx, cancel := c.With(ctx)
	defer cancel()
	return r.Do(ctx, method, uri, in, out)
}

// Status asks the replica in use how its caches are.
func (c *Client) Status(ctx context.Context) (*member.PoolStatus, error) {
	var s member.PoolStatus
	_, err := c.Do(ctx, http.MethodGet, contract.StatusPath, nil, &s)
	return &s, err
}

// Doubt reports whether the cloud contradicts what the leader fed. refused: the coordinator does not want to hear it,
// also not later.
func (c *Client) Doubt(ctx context.Context, d contract.Doubt) (refused bool, err error) {
	code, err := c.Do(ctx, http.MethodPost, contract.DoubtPath, d, nil)
	return err != nil && code >= 400 && code < 500 && code != http.StatusTooManyRequests, err
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
func (c *Client) WriteLease(ctx context.Context, name string, r role.Record, acquire bool) (written role.Record,
	conflict bool, err error) {
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

// Told is the address at which the pool reaches this hub, "" if that is not known yet: if none was given, it is the one
// that is listened on, or else where this hub is when it asks the coordinator.
func (c *Client) Told() string {
	if c.Address != "" || c.Listens == nil {
		return c.Address
	}
	at, err := netip.ParseAddrPort(c.Listens.String())
	switch {
	case err != nil:
		return ""
	case !at.Addr().IsUnspecified():
		return at.String()
	}
	host, err := netip.ParseAddr(c.Local())
	if err != nil {
		return ""
	}
	return net.JoinHostPort(host.Unmap().WithZone("").String(), strconv.Itoa(int(at.Port())))
}

// SetAddress tells in a Lease where this hub shows its relays.
func (c *Client) SetAddress(l *coordinationv1.Lease) {
	delete(l.Annotations, contract.PoolAddress)
	if address := c.Told(); address != "" {
		if l.Annotations == nil {
			l.Annotations = map[string]string{}
		}
		l.Annotations[contract.PoolAddress] = address
	}
}

// Use is the time during which a hub uses one replica.
type Use struct {
	*Replica
	left     context.Context // ends when the hub goes to another one
	end      context.CancelFunc
	standing atomic.Int32 // of a leader hub, as far as is known
}

// New makes a client that uses the server that its node prefers.
func New(cfg Config) *Client {
	c := &Client{Config: cfg}
	c.using = newUse(c.nobody())
	c.Set(cfg.Servers)
	return c
}

func newUse(r *Replica) *Use {
	left, end := context.WithCancel(context.Background())
	return &Use{Replica: r, left: left, end: end}
}

// Set says where the pool is asked from now on: at replicas of its coordinator, or at its leader hubs. What stays is
// used on; if the one in use is not among them, the use of it ends, and the one that this node prefers is used. It
// reports whether that changed.
func (c *Client) Set(servers []Server) (moved bool) {
	c.mu.Lock()
	before, now := c.replicas, make([]*Replica, 0, len(servers))
	for _, s := range Prefer(c.Node, servers) {
		i := slices.IndexFunc(before, func(r *Replica) bool { return r.key() == s.key() })
		if i >= 0 {
			now = append(now, before[i])
		} else {
			now = append(now, newReplica(c.Config, s, &c.from, &c.Meter))
		}
	}
	c.replicas = now
	was := c.using
	if moved = !slices.Contains(now, was.Replica) && len(before)+len(now) > 0; moved {
		c.using = newUse(c.nobody())
		if len(now) > 0 {
			c.using = newUse(now[0])
		}
	}
	c.mu.Unlock()
	if moved {
		was.end()
	}
	for _, r := range before {
		if !slices.Contains(now, r) {
			r.Transport.Close()
		}
	}
	return moved
}

// stands notes how a leader hub stands, and tells if that changed.
func (u *Use) stands(now standing, changed func()) {
	if u.standing.Swap(int32(now)) != int32(now) && u.Node != "" {
		changed()
	}
}

// nobody stands for a server while there is none.
func (c *Client) nobody() *Replica {
	cfg := c.Config
	cfg.Net = nowhere{}
	return newReplica(cfg, Server{URL: &url.URL{Scheme: "https", Host: "nobody"}}, &c.from, &c.Meter)
}

// errNobody is why nothing is asked.
var errNobody = errors.New("the pool has no coordinator and no other leader hub that this hub knows of")

// nowhere is where nobody is.
type nowhere struct{}

func (nowhere) DialContext(context.Context, string, string) (net.Conn, error) { return nil, errNobody }

// Replicas are all of them, in the order in which this hub prefers them.
func (c *Client) Replicas() []*Replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replicas
}

// Several reports whether there is another one to go to.
func (c *Client) Several() bool { return len(c.Replicas()) > 1 }

// Shown is the node of the leader hub in use, if that says that what it shows is fresh and nothing here speaks against
// it; "": it does not, or is a coordinator.
func (c *Client) Shown() string {
	if u := c.InUse(); u.Node != "" && standing(u.standing.Load()) == ready {
		return u.Node
	}
	return ""
}

// Leader is the node of the leader hub in use, "" if it is a coordinator.
func (c *Client) Leader() string { return c.InUse().Node }

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

// Meet lets an exchange happen with the replica that is used now.
func (c *Client) Meet(ctx context.Context, exchange func(ctx context.Context, by http.RoundTripper, at *url.URL)) {
	r, asking, cancel := c.With(ctx)
	defer cancel()
	exchange(asking, r.Transport, r.URL)
}

// Waits opens a connection to the replica that is used now, for as long as it is. See hop.Listener.
func (c *Client) Waits(ctx context.Context) (net.Conn, context.Context, error) {
	u := c.InUse()
	conn, err := u.connect(ctx)
	return conn, u.left, err
}

// Renew follows a change of credentials.
func (c *Client) Renew() {
	for _, r := range c.Replicas() {
		r.resume.Forget()
		r.Transport.Renew()
	}
}

// Close ends the use of the replica in use.
func (c *Client) Close() {
	c.InUse().end()
	for _, r := range c.Replicas() {
		r.Transport.Close()
	}
}

// Name is what logs call the coordinator: where its replicas are.
func (c *Client) Name() string {
	hosts := []string{}
	for _, r := range c.Replicas() {
		hosts = append(hosts, r.URL.Host)
	}
	return strings.Join(hosts, ",")
}
