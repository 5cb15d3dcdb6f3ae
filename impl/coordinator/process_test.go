package coordinator_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator"
)

// process is weir-coordinator as a child of the test.
type process struct {
	*server
	cmd    *exec.Cmd
	stderr *syncBuffer
	done   chan struct{}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// spawn runs weir-coordinator on a free port, with more flags.
func (p *pool) spawn(more ...string) *process {
	p.t.Helper()
	return p.spawnAt(freePort(p.t), more...)
}

func (p *pool) spawnAt(port string, more ...string) *process {
	p.t.Helper()
	exe, err := os.Executable()
	check(p.t, err)
	c := &process{
		server: &server{pool: p, url: &url.URL{Scheme: "https", Host: "127.0.0.1:" + port}},
		stderr: &syncBuffer{}, done: make(chan struct{}),
	}
	args := append([]string{
		"--nodepool-name=p", "--bind-address=127.0.0.1", "--secure-port=" + port, "--data-dir=" + p.config.DataDir,
		"--certificates-dir=" + p.config.CertificatesDir,
	}, more...)
	if !slices.ContainsFunc(more, func(a string) bool { return strings.HasPrefix(a, "--pool-scope-resources") }) {
		for _, name := range p.config.PoolScopeResources { // relayed though nobody reads it
			args = append(args, "--pool-scope-resources=+"+name)
		}
	}
	c.cmd = exec.Command(exe, args...)
	c.cmd.Env = append(os.Environ(), asCommand+"=1")
	c.cmd.Stderr = c.stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(p.t, c.cmd.Start())
	go func() { _ = c.cmd.Wait(); close(c.done) }()
	p.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.done
		if p.t.Failed() {
			p.t.Logf("weir-coordinator said:\n%s", c.stderr)
		}
	})
	return c
}

func (c *process) healthy() *process {
	c.t.Helper()
	anybody := c.as("")
	anybody.http.Timeout = 10 * time.Second // one that waits for a majority takes connections and answers nothing
	eventually(c.t, "a healthy process", func() bool {
		code, _, err := anybody.do(http.MethodGet, "/healthz", "")
		select {
		case <-c.done:
			c.t.Fatalf("it ended: %s", c.stderr)
		default:
		}
		return err == nil && code == http.StatusOK
	})
	return c
}

// ended waits for the end and returns the exit code.
func (c *process) ended() int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatal("it does not end")
	}
	return c.cmd.ProcessState.ExitCode()
}

func TestKilledAndRestarted(t *testing.T) {
	p := newPool(t)
	first := p.spawn().healthy()
	hub := first.hub("a")
	hub.show(leaderRelay(t, 100))
	term := hub.elect("a_1")
	check(t, first.cmd.Process.Kill())
	first.ended()

	second := p.spawnAt(first.url.Port()).healthy()
	hub = second.hub("a")
	if got := hub.state().Incarnation; got != term.Incarnation {
		t.Errorf("the incarnation was %s and is %s", term.Incarnation, got)
	}
	// The leader is read: the Lease survived.
	eventually(t, "the feed", func() bool { return hub.reached() == 100 })
	check(t, second.cmd.Process.Kill())
	second.ended()

	check(t, os.RemoveAll(p.config.DataDir))
	third := p.spawn().healthy()
	if got := third.hub("a").state().Incarnation; got == term.Incarnation || got == "" {
		t.Errorf("the disk was lost, the incarnation is %q still", got)
	}
}

func TestSignalEndsOpenStreams(t *testing.T) {
	c := newPool(t).spawn().healthy()
	hub := c.hub("a")
	shows := hub.show(leaderRelay(t, 100))
	hub.elect("a_1")
	eventually(t, "the feed", func() bool { return hub.reached() == 100 })
	for _, path := range []string{slicesPath + "?watch=1&resourceVersion=100", leasesPath + "?watch=1"} {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, hub.url.String()+path, nil)
		check(t, err)
		resp, err := c.viewer().http.Do(req)
		check(t, err)
		defer resp.Body.Close()
	}
	began := time.Now()
	check(t, c.cmd.Process.Signal(syscall.SIGTERM))
	if code := c.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v to end", took)
	}
	eventually(t, "the connection to the leader to end", func() bool { return !shows.read() })
}

func TestOneProcessPerDirectory(t *testing.T) {
	p := newPool(t)
	p.spawn().healthy()
	second := p.spawn()
	code := second.ended()
	if said := second.stderr.String(); code != 1 || !strings.Contains(said, p.config.DataDir) ||
		strings.Count(said, "\n") != 1 {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

func TestStartFailures(t *testing.T) {
	p := newPool(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	broken := func(file string) string {
		q := *p
		q.moveCertificates(filepath.Join(t.TempDir(), "certificates"))
		write(t, filepath.Join(q.config.CertificatesDir, file), []byte("not PEM"))
		return "--certificates-dir=" + q.config.CertificatesDir
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"port taken": {
			[]string{"--secure-port=" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}, 1, "address already in use",
		},
		"no certificates":        {[]string{"--certificates-dir="}, 2, "--certificates-dir"},
		"unreadable certificate": {[]string{broken("coordinator.pem")}, 2, "coordinator.pem"},
		"unreadable CA":          {[]string{broken("ca.crt")}, 2, "ca.crt"},
		"no pool":                {[]string{"--nodepool-name="}, 2, "--nodepool-name"},
		"bad address":            {[]string{"--bind-address=localhost"}, 2, "--bind-address"},
		"unknown resource":       {[]string{"--pool-scope-resources=things.v1.example.com"}, 2, "--pool-scope-resources"},
		"Leases relayed": {
			[]string{"--pool-scope-resources=leases.v1.coordination.k8s.io=Lease"}, 2, "--pool-scope-resources",
		},
		"Secrets": {[]string{"--pool-scope-resources=secrets.v1."}, 2, "Secrets are not for a pool"},
		"twice": {
			[]string{"--pool-scope-resources=endpoints.v1.", "--pool-scope-resources=endpoints.v1."}, 2, "once",
		},
		"tiny ring":    {[]string{"--ring-bytes=1"}, 2, "--ring-bytes"},
		"unknown flag": {[]string{"--colour"}, 2, "--colour"},
	} {
		t.Run(name, func(t *testing.T) {
			q := *p
			q.t = t
			proc := q.spawn(c.args...)
			code := proc.ended()
			if said := proc.stderr.String(); code != c.code || !strings.Contains(said, c.says) ||
				strings.Count(said, "\n") != 1 {
				t.Errorf("exit code %d, said %q; want code %d and one line that names %q", code, said, c.code, c.says)
			}
		})
	}
}

func TestRotatedAuthority(t *testing.T) {
	p := newPool(t)
	s := p.start()
	old := s.hub("a")
	old.want(http.StatusOK, http.MethodGet, contract.StatusPath, "")
	fresh := newAuthority(t)
	both := append(append([]byte{}, p.ca.pem...), fresh.pem...)
	next := write(t, p.caFile()+".new", both)
	check(t, os.Rename(next, p.caFile()))
	issuer := *p
	issuer.ca = &authority{t: t, cert: fresh.cert, key: fresh.key, pem: fresh.pem}
	eventually(t, "a certificate of the new authority to be taken", func() bool {
		c := s.asIssuedBy(issuer.ca, "system:node:b", contract.HubGroup, contract.PoolGroupPrefix+"p")
		code, _, err := c.do(http.MethodGet, contract.StatusPath, "")
		return err == nil && code == http.StatusOK
	})
	old.want(http.StatusOK, http.MethodGet, contract.StatusPath, "")
}

func TestIncarnationBelongsToTheDirectory(t *testing.T) {
	p := newPool(t)
	s := p.start()
	first := s.hub("a").state().Incarnation
	if _, err := coordinator.New(p.config); err == nil || !strings.Contains(err.Error(), p.config.DataDir) {
		t.Errorf("a second coordinator in one directory: %v", err)
	}
	s.stop()
	s = p.start()
	if again := s.hub("a").state().Incarnation; again != first || first == "" {
		t.Errorf("the incarnation was %q and is %q", first, again)
	}
	s.stop()
	check(t, os.RemoveAll(p.config.DataDir))
	if lost := p.start().hub("a").state().Incarnation; lost == first {
		t.Errorf("the incarnation of a lost disk came again: %q", lost)
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := coordinator.Run(t.Context(), []string{"--help"}, &out, io.Discard); !errors.Is(err, cli.ErrHelp) {
		t.Fatal(err)
	}
	flags := 0
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		if strings.HasPrefix(strings.TrimSpace(lines.Text()), "--") {
			flags++
		}
	}
	if flags < 12 {
		t.Errorf("%d flags in the help", flags)
	}
}

// TestIdleMemory: a coordinator shares its machine, of a gigabyte, with workloads.
func TestIdleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes memory of its own")
	}
	c := newPool(t).spawn().healthy()
	hub := c.hub("a")
	hub.show(leaderRelay(t, 100))
	hub.elect("a_1")
	eventually(t, "the feed", func() bool { return hub.reached() == 100 })
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "status"))
	check(t, err)
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "RssAnon:" {
			continue
		}
		kib, err := strconv.Atoi(fields[1])
		check(t, err)
		t.Logf("RssAnon %d KiB", kib)
		if kib > 32<<10 {
			t.Errorf("RssAnon is %d KiB, want at most 32 MiB", kib)
		}
		return
	}
	t.Skip("this system does not tell RssAnon")
}
