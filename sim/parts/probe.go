package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	probePatience = time.Second
	askPatience   = 5 * time.Second
)

// Probe asks a hub, a coordinator or weir-manager, wherever it runs, how it is.
type Probe struct {
	name   string
	base   string // URL of health, metrics and status
	client *http.Client
}

// HubProbe asks a hub of the given configuration.
func HubProbe(name string, c HubConfig) *Probe {
	return newProbe(name, "http://"+c.Health, http.DefaultTransport)
}

// CoordinatorProbe asks a coordinator of the given configuration. The transport carries a credential that may read its
// health, metrics and status.
func CoordinatorProbe(name string, c CoordinatorConfig, transport http.RoundTripper) *Probe {
	return newProbe(name, "https://"+net.JoinHostPort(c.BindAddress, strconv.Itoa(c.SecurePort)), transport)
}

// URLProbe asks anyone who answers at a URL.
func URLProbe(name, url string, transport http.RoundTripper) *Probe {
	return newProbe(name, url, transport)
}

// ManagerProbe asks weir-manager, which serves its metrics at an address of its own.
func ManagerProbe(name, address string) *Probe {
	return newProbe(name, "http://"+address, http.DefaultTransport)
}

func newProbe(name, base string, transport http.RoundTripper) *Probe {
	return &Probe{name: name, base: base, client: &http.Client{Transport: transport, Timeout: askPatience}}
}

// Healthy returns nil if it says that it is healthy.
func (p *Probe) Healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	_, err := p.get(ctx, "/healthz")
	return err
}

// Status reads its JSON status into v.
func (p *Probe) Status(ctx context.Context, v any) error {
	data, err := p.get(ctx, contract.StatusPath)
	if err != nil {
		return fmt.Errorf("status of %s: %w", p.name, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("status of %s: %w", p.name, err)
	}
	return nil
}

// Metrics reads its metrics.
func (p *Probe) Metrics(ctx context.Context) (Metrics, error) {
	data, err := p.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", p.name, err)
	}
	return ParseMetrics(string(data)), nil
}

func (p *Probe) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %s", path, resp.Status, strings.TrimSpace(string(data[:min(len(data), 200)])))
	}
	return data, nil
}
