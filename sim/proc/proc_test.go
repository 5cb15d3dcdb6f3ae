package proc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/testkit"
)

// helperEnv turns the test binary into one of the helper processes below.
const helperEnv = "WEIR_PROC_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "runner":
		helperRunner()
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("deaf")
		time.Sleep(time.Hour)
	case "fail":
		fmt.Println("first line\nport 6443 is taken")
		os.Exit(3)
	}
}

// helperRunner plays the runner that is killed: it starts a child that has a grandchild, tells their ids, and
// then waits to be killed.
func helperRunner() {
	s, err := New()
	if err != nil {
		panic(err)
	}
	dir, err := s.Scratch("data")
	if err != nil {
		panic(err)
	}
	log := filepath.Join(dir, "log")
	p, err := s.Start(Spec{
		Name: "tree", Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & echo $!; wait"}, LogFile: log,
	})
	if err != nil {
		panic(err)
	}
	grandchild := ""
	for ; grandchild == ""; time.Sleep(time.Millisecond) {
		grandchild = p.Tail(100)
	}
	fmt.Println(s.scratch, p.PID(), grandchild, s.janitor.cmd.Process.Pid)
	time.Sleep(time.Hour)
}

func newSpawner(t *testing.T) *Spawner {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.scratch); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("scratch directory is left behind: %v", err)
		}
	})
	return s
}

func start(t *testing.T, s *Spawner, spec Spec) *Process {
	t.Helper()
	p, err := s.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventually waits for a condition of the outside world, where there is nothing to wait on but itself.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, 20*time.Second, what, ok)
}

// gone reports whether a process is dead: no entry, or a zombie that waits for its new parent.
func gone(pid int) bool { s := state(pid); return s == "" || s == "Z" || s == "X" }

func state(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}

func TestKillOfTheRunnerLeavesNoProcessAndNoFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.Command(self)
	runner.Env = append(os.Environ(), helperEnv+"=runner")
	runner.Stderr = os.Stderr
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var scratch string
	var child, grandchild, janitor int
	if _, err := fmt.Sscan(line, &scratch, &child, &grandchild, &janitor); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	for _, pid := range []int{child, grandchild, janitor} {
		if gone(pid) {
			t.Fatalf("process %d should run before the kill", pid)
		}
	}

	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()

	eventually(t, "child, grandchild and janitor end",
		func() bool { return gone(child) && gone(grandchild) && gone(janitor) })
	if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("scratch directory %s is left behind: %v", scratch, err)
	}
}

func TestStopLetsAProcessEndByItself(t *testing.T) {
	s := newSpawner(t)
	p := start(t, s, Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"}})
	if err := p.Stop(t.Context(), 20*time.Second); err != nil {
		t.Error(err)
	}
	if p.Running() {
		t.Error("still running")
	}
	if err := p.Stop(t.Context(), time.Second); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

func TestStopKillsTheDeaf(t *testing.T) {
	s := newSpawner(t)
	self, _ := os.Executable()
	log := filepath.Join(t.TempDir(), "log")
	p := start(t, s, Spec{Name: "deaf one", Path: self, Env: []string{helperEnv + "=deaf"}, LogFile: log})
	eventually(t, "it ignores SIGTERM", func() bool { return p.Tail(100) == "deaf" })
	err := p.Stop(t.Context(), 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "stop deaf one: still running 50ms after SIGTERM, killed\n  deaf") {
		t.Errorf("got %v", err)
	}
	if p.Running() {
		t.Error("still running")
	}
}

func TestErrorCarriesTheEndOfTheLogOfThisStart(t *testing.T) {
	s := newSpawner(t)
	self, _ := os.Executable()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, s, Spec{Name: "apiserver", Path: self, Env: []string{helperEnv + "=fail"}, LogFile: log})
	err := p.Wait(t.Context())
	want := "apiserver: exit status 3\n  first line\n  port 6443 is taken"
	if err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	var exit *exec.ExitError
	if !errors.As(p.Err(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("Err() = %v, want exit code 3", p.Err())
	}
}

func TestOutputIsStreamedAndAHeldPipeDoesNotHang(t *testing.T) {
	s := newSpawner(t)
	r, w := io.Pipe()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(r); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	// The grandchild keeps the pipe open after its parent's end.
	p := start(t, s, Spec{Name: "talker", Path: "/bin/sh", Args: []string{"-c", "echo compiled; sleep 1000 &"}, Output: w})
	if got := <-lines; got != "compiled" {
		t.Errorf("got %q", got)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	_ = w.Close()
	for range lines {
	}
}

func TestFreezeAndThaw(t *testing.T) {
	s := newSpawner(t)
	p := start(t, s, Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"}})
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stands still", func() bool { return state(p.PID()) == "T" })
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return state(p.PID()) == "S" })

	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context(), 20*time.Second); err != nil {
		t.Errorf("stop of a frozen process: %v", err)
	}
	if err := p.Freeze(); err == nil || err.Error() != "freeze sleeper: it is not running" {
		t.Errorf("freeze after the end: %v", err)
	}
}

func TestKillReachesGrandchildren(t *testing.T) {
	s := newSpawner(t)
	log := filepath.Join(t.TempDir(), "log")
	p := start(t, s, Spec{Name: "tree", Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & echo $!; wait"}, LogFile: log})
	eventually(t, "it tells its child", func() bool { return p.Tail(100) != "" })
	grandchild, err := strconv.Atoi(p.Tail(100))
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	eventually(t, "the grandchild ends", func() bool { return gone(grandchild) })
}

func TestCloseEndsWhatIsLeft(t *testing.T) {
	s := newSpawner(t)
	p := start(t, s, Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if p.Running() {
		t.Error("still running")
	}
	if _, err := s.Start(Spec{Name: "late", Path: "/bin/true"}); !errors.Is(err, ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
}

func TestStartOfNothing(t *testing.T) {
	s := newSpawner(t)
	_, err := s.Start(Spec{Name: "hub", Path: "/nonexistent/weir-hub"})
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "start hub: ") {
		t.Errorf("got %v", err)
	}
}

func TestWaitHonoursItsContext(t *testing.T) {
	s := newSpawner(t)
	p := start(t, s, Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestUsageOfARealProcess(t *testing.T) {
	s := newSpawner(t)
	p := start(t, s, Spec{Name: "busy", Path: "/bin/sh", Args: []string{"-c", "while :; do :; done"}})
	eventually(t, "it has used CPU", func() bool {
		u, err := p.Usage()
		if err != nil {
			t.Fatal(err)
		}
		return u.CPU >= 30*time.Millisecond && u.RSS > u.RSSAnon && u.RSSAnon > 0 && u.PeakRSS >= u.RSSAnon &&
			u.Threads == 1 && u.Files >= 3
	})
	p.Kill()
	if _, err := p.Usage(); err == nil {
		t.Error("usage of a dead process should fail")
	}
}

func TestParseUsage(t *testing.T) {
	u, err := parseStatus("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\nThreads:\t7\n")
	if want := (Usage{RSSAnon: 512 << 10, RSS: 1 << 20, PeakRSS: 2 << 20, Threads: 7}); err != nil || u != want {
		t.Errorf("got %+v, %v, want %+v", u, err, want)
	}
	if _, err := parseStatus("VmRSS:\tmuch kB\n"); err == nil {
		t.Error("garbage should fail")
	}
}

// TestCPU: what some requests take is seen, less than a hundredth of a second.
func TestCPU(t *testing.T) {
	before, err := cpu(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	now := before
	for now == before {
		if now, err = cpu(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if now < before || now-before >= 10*time.Millisecond {
		t.Errorf("from %v to %v", before, now)
	}
	if _, err := cpu(1<<22 - 1); err == nil {
		t.Error("a process that is not there has used CPU")
	}
}
