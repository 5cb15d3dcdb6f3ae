package installtest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

// TestRestart: a hub that is restarted, or that crashes, refuses no call of its kubelet, by the unit of a join.
// One that is stopped refuses them at once.
func TestRestart(t *testing.T) {
	c, _ := cloudtest.Start(t)
	built, err := parts.Find(t.Context(), proctest.Spawner(t), nil, func(m string) { t.Log(m) }, parts.HubCommand,
		"kubectl-weir")
	check(t, err)
	s := newSystemd(t, machine(t, c))
	s.restart("kubelet.service")
	s.heard(t)
	s.weirs(built["kubectl-weir"], append([]string{
		"node", "join", "--pool=harbour", "--hub-binary=" + built[parts.HubCommand],
	}, ports(t)...)...)
	s.heard(t)

	raw, err := s.kubeconfig(s.config)
	check(t, err)
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	check(t, err)
	caller := newCaller(t, config)
	stop := caller.callOn(t)
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		s.mu.Lock()
		s.hub.End(by)
		waits := make(chan error, 1)
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", caller.at.Host)
		if err == nil {
			go func() { waits <- caller.callBy(t.Context(), conn) }()
		} else {
			waits <- err
		}
		failed := s.startHub()
		s.mu.Unlock()
		check(t, failed)
		if err := testkit.Value(t, time.Minute, "an answer to a call of a hub that does not run", waits); err != nil {
			t.Errorf("a call while no hub runs, which was ended by %v: %v", by, err)
		}
		was := caller.seen()
		testkit.Until(t, time.Minute, "answered calls", func() bool { return caller.seen() > was })
	}
	made, refused, longest := stop()
	if refused > 0 {
		t.Errorf("%d of %d calls were refused", refused, made)
	}
	t.Logf("%d calls, the longest of %v", made, longest)
	s.heard(t)

	_, err = s.do([]string{"stop", "weir-hub.service"})
	check(t, err)
	if err := caller.call(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a call of a hub that was stopped: %v", err)
	}
}

// caller reads the Node as the kubelet does, by a connection for each call.
type caller struct {
	at  *url.URL
	tls *tls.Config

	mu                      sync.Mutex
	made, refused, answered int
	longest                 time.Duration
}

func newCaller(t *testing.T, config *rest.Config) *caller {
	t.Helper()
	at, err := url.Parse(config.Host)
	check(t, err)
	at.Path = "/api/v1/nodes/" + nodeName
	c := &caller{at: at}
	c.tls, err = rest.TLSConfigFor(config)
	check(t, err)
	return c
}

func (c *caller) call(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.at.Host)
	if err != nil {
		return err
	}
	return c.callBy(ctx, conn)
}

// callBy calls by a connection, and closes it.
func (c *caller) callBy(ctx context.Context, conn net.Conn) error {
	transport := &http.Transport{
		TLSClientConfig: c.tls.Clone(), DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
	defer conn.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at.String(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return err
}

// callOn calls without a break until it is stopped, and returns how many calls were refused, and how long one took.
func (c *caller) callOn(t *testing.T) (stop func() (made, refused int, longest time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	over := make(chan struct{})
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for range 2 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-ctx.Done():
					return
				default:
				}
				began := time.Now()
				err := c.call(ctx)
				c.mu.Lock()
				c.made++
				switch {
				case err == nil:
					c.answered++
					c.longest = max(c.longest, time.Since(began))
				case errors.Is(err, syscall.ECONNREFUSED):
					c.refused++
				default: // it was under way when the hub ended
					t.Logf("a call failed: %v", err)
				}
				c.mu.Unlock()
			}
		})
	}
	return func() (int, int, time.Duration) {
		close(over)
		all.Wait()
		return c.made, c.refused, c.longest
	}
}

func (c *caller) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered
}
