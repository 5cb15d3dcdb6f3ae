package togate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	believed = 5 * time.Minute // how long an answer about a Node counts
	maxNodes = 1000            // that are remembered
	maxNode  = 1 << 20         // bytes of an answer
)

// nodes knows the addresses of nodes of the pool, by what kube-apiserver says.
type nodes struct {
	pool  string
	cloud http.RoundTripper // as the hub's own user
	clock clock.Clock

	mu    sync.Mutex
	known map[string]node
}

type node struct {
	addresses []netip.Addr
	until     time.Time
}

// addresses are the InternalIPs of a node. An error is why there are none: it is no node of the pool, or the cloud does
// not say.
func (x *nodes) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("%.80q is no name of a node", name)
	}
	now := x.clock.Now()
	x.mu.Lock()
	n, ok := x.known[name]
	x.mu.Unlock()
	if ok && now.Before(n.until) {
		return n.addresses, nil
	}
	all, err := x.ask(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("ask the cloud where node %s is: %w", name, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.known) >= maxNodes || x.known == nil {
		x.known = map[string]node{}
	}
	x.known[name] = node{all, now.Add(believed)}
	return all, nil
}

func (x *nodes) ask(ctx context.Context, name string) ([]netip.Addr, error) {
	// A list of one: hubs may list nodes, and not get them.
	q := url.Values{"fieldSelector": {"metadata.name=" + name}, "labelSelector": {contract.NodePoolLabel + "=" + x.pool}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud/api/v1/nodes?"+q.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", contract.UserAgent)
	resp, err := x.cloud.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxNode))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("answer %s", resp.Status)
	}
	var list corev1.NodeList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != name || list.Items[0].Labels[contract.NodePoolLabel] != x.pool {
		return nil, fmt.Errorf("it is no node of pool %s", x.pool)
	}
	var all []netip.Addr
	for _, a := range list.Items[0].Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			all = append(all, ip)
		}
	}
	return all, nil
}
