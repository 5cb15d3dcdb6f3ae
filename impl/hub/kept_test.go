package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
)

// child is weir-hub as a child of the test.
type child struct {
	t           testing.TB
	cmd         *exec.Cmd
	done        chan struct{}
	log         *logBuffer
	api, health string
}

func (b *bed) spawn(pairs ...string) *child {
	b.t.Helper()
	exe, err := os.Executable()
	check(b.t, err)
	p := &child{t: b.t, done: make(chan struct{}), log: &logBuffer{}}
	for _, name := range twoResources { // whose clients here list and do not watch
		pairs = append(pairs, "pool-scope-resources", "+"+name)
	}
	p.cmd = exec.Command(exe,
		b.args(append(pairs, "log-format", "json", "client-ca-file", b.config.ClientCAFiles[0])...)...)
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stderr = p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if b.wrap != nil {
		b.wrap(p.cmd)
	}
	check(b.t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	b.t.Cleanup(func() {
		p.kill()
		if b.t.Failed() {
			b.t.Logf("weir-hub said:\n%s", p.log)
		}
	})
	eventually(b.t, "the process to say where it listens", func() bool {
		select {
		case <-p.done:
			b.t.Fatalf("it ended: %s", p.log)
		default:
		}
		for line := range strings.Lines(p.log.String()) {
			var started struct{ Msg, Address, Health string }
			if json.Unmarshal([]byte(line), &started) == nil && started.Msg == "starting" {
				p.api, p.health = "https://"+started.Address, "http://"+started.Health
			}
		}
		return p.api != ""
	})
	return p
}

// kill is kill -9.
func (p *child) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// metric is the value of a metric of Endpoints, "" if there is none.
func (p *child) metric(c *http.Client, name string) string {
	_, body := get(p.t, c, p.health+"/metrics")
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, name+`{resource="endpoints.v1."} `); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// list lists Endpoints and returns their names, the version, and the age that is told.
func (p *child) list(c *http.Client, user string) (names []string, version string, age int, code int) {
	resp, body := get(p.t, c, p.api+"/api/v1/endpoints", "Authorization", "Bearer "+user)
	var l struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct{ Metadata struct{ Name string } }
	}
	check(p.t, json.Unmarshal([]byte(body), &l))
	for _, i := range l.Items {
		names = append(names, i.Metadata.Name)
	}
	age, err := strconv.Atoi(resp.Header.Get(contract.AgeHeader))
	if err != nil && resp.StatusCode == http.StatusOK {
		p.t.Errorf("the age is told as %q", resp.Header.Get(contract.AgeHeader))
	}
	return names, l.Metadata.ResourceVersion, age, resp.StatusCode
}

// TestKilledWithoutCloud: a hub that is killed and starts again while the cloud is away answers as before, tells the
// age, lets watches resume, and goes on at its version, without a list, when the cloud is back.
func TestKilledWithoutCloud(t *testing.T) {
	b := newBed(t, 1)
	cloud, link := b.clouds[0], newCut(t, strings.TrimPrefix(b.clouds[0].url(), "https://"))
	cloud.put("default", "web")
	flags := []string{
		"cloud-server", link.url(), "heartbeat-interval", "200ms", "heartbeat-timeout", "200ms", "heartbeat-failed-retry",
		"2",
	}
	first := b.spawn(flags...)
	client, plain := b.client(nil), testClient(t, nil, false)
	eventually(t, "a list", func() bool { names, _, _, _ := first.list(client, "alice"); return len(names) == 1 })
	for i := range 5 {
		cloud.put("default", fmt.Sprint("web-", i))
	}
	last := strconv.FormatUint(cloud.version, 10)
	eventually(t, "all to be on disk", func() bool {
		v, err := strconv.ParseFloat(first.metric(plain, "weir_snapshot_resource_version"), 64)
		return err == nil && strconv.FormatFloat(v, 'f', 0, 64) == last
	})
	eventually(t, "the allowance to be on disk", func() bool {
		_, err := os.Stat(filepath.Join(b.dir, "data", "verdicts"))
		return err == nil
	})
	link.set(true)
	first.kill()
	lists := cloud.listed()

	second := b.spawn(flags...)
	resp, _ := get(t, plain, second.health+"/readyz")
	names, version, age, code := second.list(client, "alice")
	if resp.StatusCode != http.StatusOK || code != http.StatusOK || len(names) != 6 || version != last {
		t.Fatalf("ready is %d, a list is %d: %v at %s, want 6 at %s", resp.StatusCode, code, names, version, last)
	}
	eventually(t, "the age to grow", func() bool { _, _, now, _ := second.list(client, "alice"); return now > age })
	if restored := second.metric(plain, "weir_relay_restored"); restored != "1" {
		t.Errorf("weir_relay_restored is %q", restored)
	}
	if _, _, _, code := second.list(client, "mallory"); code != http.StatusServiceUnavailable {
		t.Errorf("whom the cloud has not allowed gets %d", code)
	}
	if n := strings.Count(second.log.String(), "restored from disk"); n != 2 { // one line a relay
		t.Errorf("%d lines about restoring", n)
	}

	// A client that was away for three changes: it is told them, and what comes when the cloud is back.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v, err := strconv.ParseUint(last, 10, 64)
	check(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s/api/v1/endpoints?watch=1&resourceVersion=%d", second.api, v-3), nil)
	check(t, err)
	req.Header.Set("Authorization", "Bearer mallory")
	if resp, err := client.Do(req); err != nil || resp.StatusCode != http.StatusTooManyRequests ||
		resp.Header.Get("Retry-After") == "" {
		t.Errorf("a watch that was never allowed: %v, %v", resp.Status, err)
	} else {
		resp.Body.Close()
	}
	req.Header.Set("Authorization", "Bearer alice") // who may list, may watch
	link.set(false)
	cloud.put("default", "later")
	var watched *http.Response
	eventually(t, "the watch", func() bool {
		watched, err = client.Do(req)
		check(t, err)
		if watched.StatusCode != http.StatusOK {
			watched.Body.Close()
		}
		return watched.StatusCode == http.StatusOK
	})
	defer watched.Body.Close()
	events := json.NewDecoder(watched.Body)
	for _, want := range []string{"web-2", "web-3", "web-4", "later"} {
		var ev struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		check(t, events.Decode(&ev))
		if ev.Object.Metadata.Name != want {
			t.Fatalf("a %s event of %q, want %q", ev.Type, ev.Object.Metadata.Name, want)
		}
	}
	eventually(t, "the relay not to count as restored",
		func() bool { return second.metric(plain, "weir_relay_restored") == "0" })
	if n := cloud.listed(); n != lists {
		t.Errorf("%d lists from the cloud after the restart", n-lists)
	}
}

func (c *fakeCloud) listed() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lists {
		n += l
	}
	return n
}

// TestStoppedHubKeepsAll: a hub that is told to end writes what it has, however short it ran.
func TestStoppedHubKeepsAll(t *testing.T) {
	b := newBed(t, 1)
	b.clouds[0].put("default", "web")
	stop := b.start()
	eventually(t, "the relays", func() bool {
		return !slices.ContainsFunc(b.hub.sources.Relays(), func(r *relay.Relay) bool { return !r.Status().Synced })
	})
	stop()
	b.config.CloudServers = []string{"https://127.0.0.1:1"}
	stop = b.start()
	for _, r := range b.hub.Status().Resources {
		if !r.Synced || !r.Restored || r.Version < 100 || r.AgeSeconds < 0 {
			t.Errorf("%+v", r)
		}
	}
	stop()
}
