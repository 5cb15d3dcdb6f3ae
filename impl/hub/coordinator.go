package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// coordinator is a client of the pool's coordinator: health, status and the two Leases of the pool. It uses one of its replicas at
// a time; see replica.go.
type coordinator struct {
	replicas []*replica // in the order in which this hub prefers them
	policy   healthPolicy
	clock    clock.WithTicker
	logger   *slog.Logger
	leads    func() bool   // this hub is the leader
	moved    func()        // called without locks when another replica is used
	address  func() string // where this hub shows its relays, "": not known
	meter    meter
	from     atomic.Pointer[string] // the address that the last connection came from

	// Only healthz touches these.
	homeSeen time.Time // since when the first one is ready while another is used; zero: it is not
	stale    int       // probes in a row that found the one in use not to be fresh

	mu    sync.Mutex
	using *use
}

// do sends a request to the replica in use and reads the answer into out, unless that is nil. The status code is returned with
// errors about it.
func (c *coordinator) do(ctx context.Context, method, path string, in, out any) (code int, err error) {
	r, ctx, cancel := c.with(ctx)
	defer cancel()
	return r.do(ctx, method, path, in, out)
}

func (r *replica) do(ctx context.Context, method, path string, in, out any) (code int, err error) {
	return r.doQuery(ctx, method, path, "", in, out)
}

func (r *replica) doQuery(ctx context.Context, method, path, query string, in, out any) (code int, err error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(raw)
	}
	u := r.url.JoinPath(path)
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	if resp.StatusCode > 299 {
		var s metav1.Status
		_ = json.Unmarshal(answer, &s)
		return resp.StatusCode, fmt.Errorf("%s %s: %s %s", method, path, resp.Status, s.Message)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			return 0, fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	return resp.StatusCode, nil
}

// poolStatus is what a hub reads of a coordinator's status.
type poolStatus struct {
	Incarnation string         `json:"incarnation"`
	Ready       bool           `json:"ready"`
	Resources   []poolResource `json:"resources"`
}

type poolResource struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Ready    bool   `json:"ready"`
	Version  uint64 `json:"version"`
	History  uint64 `json:"history"`
	Feeder   string `json:"feeder"`
}

// of is what the coordinator says of a resource, nil if nothing.
func (s *poolStatus) of(resource string) *poolResource {
	for i := range s.Resources {
		if s.Resources[i].Resource == resource {
			return &s.Resources[i]
		}
	}
	return nil
}

func (c *coordinator) status(ctx context.Context) (*poolStatus, error) {
	r, ctx, cancel := c.with(ctx)
	defer cancel()
	return r.status(ctx)
}

func (r *replica) status(ctx context.Context) (*poolStatus, error) {
	var s poolStatus
	_, err := r.do(ctx, http.MethodGet, contract.StatusPath, nil, &s)
	return &s, err
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + contract.LeaseNamespace + "/leases"

// readLease reads a Lease; one that does not exist is no error.
func (c *coordinator) readLease(ctx context.Context, name string) (role.Record, error) {
	var l coordinationv1.Lease
	code, err := c.do(ctx, http.MethodGet, leasesPath+"/"+name, nil, &l)
	if code == http.StatusNotFound {
		return role.Record{}, nil
	}
	return fromLease(&l), err
}

// writeLease writes a Lease if the stored one is still that which r was read from. conflict tells that it is not.
func (c *coordinator) writeLease(ctx context.Context, name string, r role.Record, acquire bool) (written role.Record, conflict bool, err error) {
	now := metav1.NewMicroTime(c.clock.Now())
	if acquire {
		r.AcquireTime = now.Time
	}
	r.RenewTime = now.Time
	l := toLease(name, r)
	if name == contract.ElectionLease && r.Holder != "" {
		setAddress(l, c.address())
	}
	method, path := http.MethodPut, leasesPath+"/"+name
	if !r.Exists {
		method, path = http.MethodPost, leasesPath
	}
	var out coordinationv1.Lease
	code, err := c.do(ctx, method, path, l, &out)
	// A Lease that is gone: the coordinator has lost its disk.
	conflict = code == http.StatusConflict || code == http.StatusNotFound && r.Exists
	return fromLease(&out), conflict, err
}

func fromLease(l *coordinationv1.Lease) role.Record {
	r := role.Record{Exists: true, UID: string(l.UID), Version: l.ResourceVersion}
	if s := l.Spec; s.HolderIdentity != nil {
		r.Holder = *s.HolderIdentity
	}
	if s := l.Spec; s.LeaseDurationSeconds != nil {
		r.Duration = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	if s := l.Spec; s.AcquireTime != nil {
		r.AcquireTime = s.AcquireTime.Time
	}
	if s := l.Spec; s.RenewTime != nil {
		r.RenewTime = s.RenewTime.Time
	}
	if s := l.Spec; s.LeaseTransitions != nil {
		r.Transitions = *s.LeaseTransitions
	}
	return r
}

// local is the address that this hub has towards the coordinator.
func (c *coordinator) local() string {
	if from := c.from.Load(); from != nil {
		return *from
	}
	return ""
}

// setAddress tells in a Lease where this hub shows its relays.
func setAddress(l *coordinationv1.Lease, address string) {
	delete(l.Annotations, contract.PoolAddress)
	if address != "" {
		if l.Annotations == nil {
			l.Annotations = map[string]string{}
		}
		l.Annotations[contract.PoolAddress] = address
	}
}

// toLease sets UID and version as preconditions: after the coordinator lost its disk, versions may come again.
func toLease(name string, r role.Record) *coordinationv1.Lease {
	seconds := int32(math.Ceil(r.Duration.Seconds()))
	renew := metav1.NewMicroTime(r.RenewTime)
	l := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: contract.LeaseNamespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &r.Holder, LeaseDurationSeconds: &seconds, RenewTime: &renew, LeaseTransitions: &r.Transitions,
		},
	}
	if r.Exists {
		l.UID, l.ResourceVersion = types.UID(r.UID), r.Version
	}
	if !r.AcquireTime.IsZero() {
		acquire := metav1.NewMicroTime(r.AcquireTime)
		l.Spec.AcquireTime = &acquire
	}
	return l
}
