package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/install/cluster"
	"github.com/weir-edge/weir/impl/process"
)

// hubAnswer bounds what is read of a hub.
const hubAnswer = 4 << 20

// staleBeat is the age of a heartbeat from which on it proves nothing: a kubelet gives one every ten seconds, and a
// Lease counts for forty.
const staleBeat = 40 * time.Second

// HubStatus is what a hub says of itself, as far as it matters here.
type HubStatus struct {
	Node   string `json:"node"`
	Pool   string `json:"pool"`
	Role   string `json:"role"`
	Reason string `json:"reason,omitempty"`
	Leader string `json:"leader,omitempty"`
	Source string `json:"source"`
	Cloud  []struct {
		Server string `json:"server"`
		InUse  bool   `json:"inUse"`
		Proxy  string `json:"proxy,omitempty"`
	} `json:"cloud"`
	Heartbeat struct {
		Count  int       `json:"count"`
		Last   time.Time `json:"last,omitzero"`
		Passed time.Time `json:"passed,omitzero"` // when the cloud last took one
		CutOff bool      `json:"cutOff"`
	} `json:"heartbeat"`
	Images *HubImages            `json:"images,omitempty"`
	Pods   *nodelocal.PodsStatus `json:"pods,omitempty"`
	Lacks  []process.Lack        `json:"lacks,omitempty"` // what it goes on without
}

// HubImages is the mirror of a hub.
type HubImages struct {
	Address string `json:"address"`
}

// askHub reads from the hub's health port.
func askHub(ctx context.Context, port int, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(port)+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return answered(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, req)
}

func answered(client *http.Client, req *http.Request) ([]byte, error) {
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, hubAnswer))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", answer.Status, strings.TrimSpace(string(body)))
	}
	return body, err
}

// StatusOfHub asks the hub of this machine.
func StatusOfHub(ctx context.Context, port int) (s HubStatus, err error) {
	text, err := askHub(ctx, port, contract.StatusPath)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// doorOpen reports whether the hub lets the kubelet read its own Node.
func (i *Installer) doorOpen(ctx context.Context, k *kubelet) error {
	if _, err := askHub(ctx, i.Ports.Health, "/readyz"); err != nil {
		return fmt.Errorf("the hub is not ready: %w", err)
	}
	ca, err := i.Host.read(authority)
	if err != nil {
		return fmt.Errorf("the hub shows no authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return errors.New("the hub shows no authority")
	}
	own, err := tls.X509KeyPair(k.certPEM, k.keyPEM)
	if err != nil {
		return err
	}
	local, err := tls.X509KeyPair(k.local, k.local)
	if err != nil {
		return err
	}
	for _, pair := range []tls.Certificate{own, local} { // it may show either
		if err := i.opens(ctx, k.node, pair, roots); err != nil {
			return err
		}
	}
	return nil
}

// opens reports whether the hub lets who shows a certificate read a Node.
func (i *Installer) opens(ctx context.Context, node string, pair tls.Certificate, roots *x509.CertPool) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.AskFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+local(i.Ports.Secure)+"/api/v1/nodes/"+node,
		http.NoBody)
	if err != nil {
		return err
	}
	t := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		},
	}
	if _, err := answered(&http.Client{Transport: t}, req); err != nil {
		return fmt.Errorf("the hub does not let the kubelet's certificate read its Node: %w", err)
	}
	return nil
}

// until tries until there is no error, or the time is over: then the last one is the answer.
func (i *Installer) until(ctx context.Context, what string, try func(context.Context) error) error {
	end := i.Clock.NewTimer(i.Timeout)
	defer end.Stop()
	again := i.Clock.NewTicker(retry)
	defer again.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C():
		case <-end.C():
			return fmt.Errorf("%s: not within %v: %w", what, i.Timeout, err)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		}
	}
}

const retry = 250 * time.Millisecond
