package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/proc"
)

const (
	look    = 100 * time.Millisecond
	asking  = 5 * time.Second
	tail    = 2048
	maxBody = 1 << 20
)

// Peer is the peer on one node.
type Peer struct {
	*proc.Process
	Machine Machine

	profile            *Profile
	log                string
	health, url, trust string
}

// Manifests are the objects that are to be applied at the cloud, with the values of a machine.
func (p *Profile) Manifests(m Machine) (all []string, err error) {
	for i, text := range p.manifests {
		filled, err := m.fill(text)
		if err != nil {
			return nil, fmt.Errorf("%s: objects[%d]: %w", p.path, i, err)
		}
		all = append(all, filled)
	}
	return all, nil
}

// User is the identity of a machine's client certificate.
func (p *Profile) User(m Machine) (user string, groups []string, err error) {
	if user, err = m.fill(p.Identity.User); err != nil {
		return "", nil, err
	}
	for _, g := range p.Identity.Groups {
		filled, err := m.fill(g)
		if err != nil {
			return "", nil, err
		}
		groups = append(groups, filled)
	}
	return user, groups, nil
}

// Start writes the peer's files and starts it. Ready waits for it.
func (p *Profile) Start(s *proc.Spawner, m Machine, log string) (*Peer, error) {
	x := &Peer{Machine: m, profile: p, log: log}
	for _, f := range p.Files {
		if err := x.write(f); err != nil {
			return nil, err
		}
	}
	spec := proc.Spec{Name: p.Name + " on " + m.Node, Path: p.binary, LogFile: log}
	for _, a := range p.Args {
		filled, err := m.fill(a)
		if err != nil {
			return nil, err
		}
		spec.Args = append(spec.Args, filled)
	}
	for name, value := range p.Env {
		filled, err := m.fill(value)
		if err != nil {
			return nil, err
		}
		spec.Env = append(spec.Env, name+"="+filled)
	}
	var err error
	for to, text := range map[*string]string{&x.health: p.Health, &x.url: p.Serve, &x.trust: p.Trust} {
		if *to, err = m.fill(text); err != nil {
			return nil, err
		}
	}
	x.url = strings.TrimSuffix(x.url, "/")
	x.Process, err = s.Start(spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return x, nil
}

func (x *Peer) write(f File) error {
	path, err := x.Machine.fill(f.Path)
	if err != nil {
		return err
	}
	text, err := x.Machine.fill(f.Text)
	if err != nil {
		return err
	}
	path = filepath.Join(x.Machine.Data, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// Ready waits until the peer says that it is healthy, and has it answer as an API server where it is said to serve. The
// error says what is to be looked at.
func (x *Peer) Ready(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, x.profile.Ready.Duration)
	defer cancel()
	if err := x.until(ctx, "health", x.health, func() error {
		_, err := x.get(ctx, x.health, "")
		return err
	}); err != nil {
		return err
	}
	return x.until(ctx, "serve", x.url, func() error { return x.serves(ctx, token) })
}

// serves asks for the Node object of its machine, which only the cloud knows.
func (x *Peer) serves(ctx context.Context, token string) error {
	body, err := x.get(ctx, x.url+"/api/v1/nodes/"+x.Machine.Node, token)
	if err != nil {
		return err
	}
	var node struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(body, &node); err != nil || node.Kind != "Node" || node.Metadata.Name != x.Machine.Node {
		return fmt.Errorf("the answer is not the Node %s: %.100q", x.Machine.Node, body)
	}
	return nil
}

// until asks again and again. A process that has ended is told of at once: somebody else may answer at its address.
func (x *Peer) until(ctx context.Context, field, url string, ask func() error) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var last error
	for {
		err := ask()
		if last == nil || ctx.Err() == nil { // what the end of the patience did to a request tells nothing
			last = err
		}
		if !x.Running() {
			return fmt.Errorf("the peer ended before it was ready: %w", x.Ended())
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-x.Done():
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			return fmt.Errorf("%s does not answer at %s within %v: %w\n  set %s of %s to where it answers, or ready to how "+
				"long that takes; the end of its log, %s: %s",
				x.Name(), url, x.profile.Ready.Duration, last, field, x.profile.path, x.log, orSilence(x.Tail(tail)))
		}
	}
}

// Ended says how a process ended that was to go on, and what is to be looked at.
func (x *Peer) Ended() error {
	err := x.Err()
	if err == nil {
		err = errors.New(x.Name() + ": exit status 0")
	}
	return fmt.Errorf("%w\n  look at args, env and files of %s, and at %s", err, x.profile.path, x.log)
}

func orSilence(log string) string {
	if strings.TrimSpace(log) == "" {
		return "it says nothing"
	}
	return log
}

// get reads a URL as JSON.
func (x *Peer) get(ctx context.Context, url, token string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	roots := x509.NewCertPool()
	if strings.HasPrefix(url, "https:") {
		pem, err := os.ReadFile(x.trust)
		if err != nil {
			return nil, fmt.Errorf("trust: %w", err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("trust: %s has no certificate", x.trust)
		}
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.200s", resp.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// Config is how clients of the node reach it.
func (x *Peer) Config(token string) *rest.Config {
	c := &rest.Config{Host: x.url, BearerToken: token, QPS: -1, WarningHandler: rest.NoWarnings{}}
	if strings.HasPrefix(x.url, "https:") {
		c.TLSClientConfig.CAFile = x.trust
	}
	return c
}
