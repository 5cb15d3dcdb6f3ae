package routes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
)

// The kinds of callers by name.
const (
	Resolves = "caller that resolves the name each time"
	Resolved = "caller that resolved the name once"
)

// Named calls Services by their DNS names, as a program in a pod of a node does: it asks the cluster's DNS at the
// address of its Service, and where a packet to a Service goes, the node's kube-proxy says.
type Named struct {
	config NamedConfig
	client http.Client
	names  []string // of the Services, in order

	mu            sync.Mutex // guards what follows
	seen          Client
	addresses     map[string]string    // of Services, by name; kept by one that resolves once
	led           map[string]time.Time // when each endpoint was led to last
	asked         string               // the endpoint of DNS that was asked last
	calls, failed int
}

// NamedConfig is what a Named needs.
type NamedConfig struct {
	Node, Kind string
	Proxy      string              // URL of the node's kube-proxy
	DNS        string              // address of the Service of DNS
	Namespace  string              // of all Services
	Services   map[string][]string // which pods may answer, by Service
	Servers    []string            // pods of DNS
	Waits      bool                // it begins with the first answer, and calls that fail before are not noted
	Failure    func(error)         // told of each call that failed
}

// NewNamed returns one.
func NewNamed(c NamedConfig) *Named {
	n := &Named{
		config: c, client: NewClient(callPatience), names: slices.Sorted(maps.Keys(c.Services)),
		seen:      Client{Node: c.Node, Kind: c.Kind, Calls: map[string]bool{}},
		addresses: map[string]string{}, led: map[string]time.Time{},
	}
	for _, pods := range c.Services {
		for _, pod := range pods {
			n.seen.Calls[pod] = true
		}
	}
	if c.Kind == Resolves {
		for _, pod := range c.Servers {
			n.seen.Calls[pod] = true
		}
	}
	return n
}

// Run calls until ctx ends, each Service each time.
func (n *Named) Run(ctx context.Context) {
	if !n.config.Waits {
		n.mu.Lock()
		n.seen.From = time.Now()
		n.mu.Unlock()
	}
	t := time.NewTicker(callEvery)
	defer t.Stop()
	for ctx.Err() == nil {
		for _, service := range n.names {
			began := time.Now()
			err := n.call(ctx, service)
			if ctx.Err() != nil {
				break
			}
			n.note(began, err)
		}
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen.To = time.Now()
}

func (n *Named) note(began time.Time, err error) {
	n.mu.Lock()
	if n.seen.From.IsZero() {
		if err != nil {
			n.mu.Unlock()
			return
		}
		n.seen.From = began
	}
	n.calls++
	if err != nil {
		n.failed++
		n.seen.Failures = append(n.seen.Failures, Failure{From: began, To: time.Now()})
	}
	n.mu.Unlock()
	if err != nil {
		n.config.Failure(err)
	}
}

// Count is how many calls there were, and how many failed.
func (n *Named) Count() (calls, failed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls, n.failed
}

// Seen is who answered so far; ok is false if it has not begun.
func (n *Named) Seen() (c Client, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c = n.seen
	c.Answers, c.Failures = slices.Clone(c.Answers), slices.Clone(c.Failures)
	return c, !c.From.IsZero()
}

// call resolves a Service's name and calls the Service. A pod of another Service is a failure.
func (n *Named) call(ctx context.Context, service string) error {
	to, err := n.resolve(ctx, service)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", service, err)
	}
	endpoint, err := n.route(ctx, net.JoinHostPort(to, "80")+"/TCP")
	if err != nil {
		return fmt.Errorf("call %s: %w", service, err)
	}
	pod, err := Ask(ctx, &n.client, endpoint.Addr().String())
	if err != nil {
		return fmt.Errorf("call %s: %w", service, err)
	}
	n.answered(endpoint.Addr().String(), pod)
	if slices.Contains(n.config.Services[service], pod) {
		return nil
	}
	return fmt.Errorf("call %s: %s answers at %s, which is not of that Service", service, pod, endpoint)
}

// answered notes an answer. DNS does not say which pod it is.
func (n *Named) answered(address, pod string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen.Answers = append(n.seen.Answers, Answer{At: time.Now(), Address: address, Pod: pod})
}

// resolve finds the address of a Service.
func (n *Named) resolve(ctx context.Context, service string) (string, error) {
	if n.config.Kind == Resolved {
		n.mu.Lock()
		had := n.addresses[service]
		n.mu.Unlock()
		if had != "" {
			return had, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	r := net.Resolver{PreferGo: true, StrictErrors: true, Dial: n.dial}
	name := fmt.Sprintf("%s.%s.svc.%s.", service, n.config.Namespace, runtime.DNSDomain)
	found, err := r.LookupNetIP(ctx, "ip4", name)
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	server := n.asked
	n.addresses[service] = found[0].String()
	n.mu.Unlock()
	n.answered(server, "")
	return found[0].String(), nil
}

// dial leads a question to DNS, whatever name server this machine has.
func (n *Named) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	protocol := strings.ToUpper(strings.TrimRight(network, "46"))
	endpoint, err := n.route(ctx, net.JoinHostPort(n.config.DNS, "53")+"/"+protocol)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.asked = endpoint.Addr().String()
	n.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network,
		net.JoinHostPort(runtime.DialAddress(endpoint.Addr().String()), strconv.Itoa(int(endpoint.Port()))))
}

// route is where kube-proxy leads a packet to a Service: of all endpoints, the one that it was led to the longest time
// ago. A kernel takes any, so it may take that.
func (n *Named) route(ctx context.Context, to string) (netip.AddrPort, error) {
	var none netip.AddrPort
	all, err := n.rules(ctx, to)
	if err != nil {
		return none, err
	}
	if len(all) == 0 {
		return none, errNoEndpoint
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	next := slices.MinFunc(all, func(a, b string) int { return n.led[a].Compare(n.led[b]) })
	n.led[next] = time.Now()
	return netip.ParseAddrPort(next)
}

// rules asks the node's kube-proxy.
func (n *Named) rules(ctx context.Context, to string) (all []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.config.Proxy+"/route?"+url.Values{"to": {to}}.Encode(),
		http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask kube-proxy: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return nil, errors.New("kube-proxy: " + strings.TrimSpace(string(why)))
	}
	return all, json.NewDecoder(resp.Body).Decode(&all)
}
