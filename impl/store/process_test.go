package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/queue"
)

// roleVariable tells a child process of these tests what to do, and where.
const roleVariable = "WEIR_STORE_TEST"

// child runs a test of this file again in a process of its own, which dies with this one.
func child(t *testing.T, test, role string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+test+"$", "-test.v", fmt.Sprint("-test.short=", testing.Short()))
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// TestKilled: a process that records and queues is killed at any time, over and over. What it was answered is there,
// and what is served is a list as it was at one moment.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(roleVariable); dir != "" {
		recordForEver(t, dir)
		return
	}
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(25, 4))
	answered, served := 0, 0
	for round := range rounds {
		cmd := child(t, "TestKilled", dir)
		out, err := cmd.StdoutPipe()
		check(t, err)
		check(t, cmd.Start())
		lines := bufio.NewScanner(out)
		last, flushes := answered, 0
		report := func() bool {
			_, err := fmt.Sscanf(lines.Text(), "answered %d, flushes %d", &last, &flushes)
			return err == nil
		}
		// Every other child lives until it wrote its lists once; a quick machine kills the rest before.
		for kill := 1 + rnd.IntN(60); kill > 0 && lines.Scan(); {
			if report() && (round%2 == 1 || flushes > 0) {
				kill--
			}
		}
		check(t, cmd.Process.Kill())
		for lines.Scan() { // what it had answered before it died
			report()
		}
		_ = cmd.Wait()
		if last == answered {
			t.Fatalf("round %d: the child did nothing", round)
		}
		answered = last
		s := open(t, Config{Dir: dir})
		e, ok := s.Queue().Lookup(nodeTarget())
		if !ok {
			t.Fatalf("round %d: the write %d is lost", round, answered)
		}
		var n int
		if _, err := fmt.Sscanf(string(e.Ours), `{"n":%d}`, &n); err != nil || n < answered {
			t.Fatalf("round %d: %d was answered, %s is there (%v)", round, answered, e.Ours, err)
		}
		answered = n
		if got := read(t, s, kubelet()); got != "unknown" {
			served++
			if want := listAt(t, got); got != want {
				t.Fatalf("round %d: %s, want %s", round, got, want)
			}
		}
		if st := s.Stats(); st.SetAside+st.DamagedRows > 0 {
			t.Fatalf("round %d: %+v", round, st)
		}
		s.Close()
	}
	t.Logf("killed %d times, %d writes answered, a list was served %d times", rounds, answered, served)
	if served < rounds/2 {
		t.Error("the test does not test much")
	}
}

func nodeTarget() queue.Target { return queue.Target{Kind: queue.NodeStatus, Name: "n"} }

// recordForEver goes on where the folder stands: at version v the pods are those whose number is a digit of v.
func recordForEver(t *testing.T, dir string) {
	s := open(t, Config{Dir: dir, Every: 10 * time.Millisecond, Clock: clock.RealClock{}})
	go func() { _ = s.Run(context.Background()) }()
	n := 1000
	if e, ok := s.Queue().Lookup(nodeTarget()); ok {
		if _, err := fmt.Sscanf(string(e.Ours), `{"n":%d}`, &n); err != nil {
			t.Fatal(err)
		}
	}
	for {
		n++
		var items []*wire.Object
		for _, d := range digits(n) {
			items = append(items, pod(t, "ns/"+d, uint64(n)))
		}
		list(t, s, kubelet(), podKind, uint64(n), items...)
		check(t, s.Queue().Put(queue.Write{Target: nodeTarget(), Ours: fmt.Appendf(nil, `{"n":%d}`, n)}))
		fmt.Printf("answered %d, flushes %d\n", n, s.Stats().Flushes)
	}
}

func digits(n int) (all []string) {
	for d := range 10 {
		if strings.ContainsRune(strconv.Itoa(n), rune('0'+d)) {
			all = append(all, strconv.Itoa(d))
		}
	}
	return all
}

// listAt is what a list at this version should be; the objects may be newer than it.
func listAt(t *testing.T, got string) string {
	t.Helper()
	head, items, _ := strings.Cut(got, ":")
	n, err := strconv.Atoi(head)
	check(t, err)
	want, have := head+":", map[string]string{}
	for _, f := range strings.Fields(items) {
		key, version, _ := strings.Cut(f, "@")
		have[key] = version
	}
	for _, d := range digits(n) {
		want += " ns/" + d + "@" + have["ns/"+d]
	}
	return want
}

// TestRealFullDisk: on a small tmpfs, reads go on, and so do writes as soon as there is room.
func TestRealFullDisk(t *testing.T) {
	if dir := os.Getenv(roleVariable); dir != "" {
		onSmallDisk(t, dir)
		return
	}
	cmd := child(t, "TestRealFullDisk", t.TempDir())
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || strings.Contains(string(out), "no tmpfs here") {
		t.Skipf("this machine lets nobody make a mount namespace: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func onSmallDisk(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no tmpfs here: ", err)
	}
	s := open(t, Config{Dir: filepath.Join(dir, "store"), MaxBytes: 64 << 20})
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	putStatus(t, s)
	s.step(true)
	big := filepath.Join(dir, "big")
	check(t, os.WriteFile(big, make([]byte, 1<<20), 0o600))
	f, err := os.OpenFile(big, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	w := watch(t, s, kubelet(), podKind, 10)
	for i := range 40 {
		w.Event(event(wire.Added, pod(t, fmt.Sprint("a/p", i), uint64(11+i), "fill="+strings.Repeat("x", 30<<10))))
	}
	s.step(true)
	if st := s.Stats(); st.LastError == "" {
		t.Fatalf("the disk is not full: %+v", st)
	}
	if got := read(t, s, kubelet()); !strings.HasPrefix(got, "50: a/p0@11") {
		t.Errorf("from memory: %.80s", got)
	}
	refused := 0
	for i := range 20 {
		if s.Queue().Put(queue.Write{
			Target: nodeTarget(), Ours: fmt.Appendf(nil, `{"a":%d,"fill":%q}`, i, strings.Repeat("x", 3000)),
		}) != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no write was refused")
	}
	check(t, os.Remove(big))
	s.step(true)
	s.step(true)
	if st := s.Stats(); st.LastError != "" || st.SetAside > 0 {
		t.Errorf("with room again: %+v", st)
	}
	check(t, s.Queue().Put(queue.Write{Target: nodeTarget(), Ours: []byte(`{"a":"new"}`)}))
	w.Close()
	s = again(t, s)
	defer s.Close()
	if got := read(t, s, kubelet()); !strings.HasPrefix(got, "50: a/p0@11") {
		t.Errorf("after a restart: %.80s", got)
	}
	if e, ok := s.Queue().Lookup(nodeTarget()); !ok || string(e.Ours) != `{"a":"new"}` {
		t.Errorf("%+v", e)
	}
}

// TestRun: Run writes by itself, checks what is there, and ends with its context.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, Every: 10 * time.Millisecond, Clock: clock.RealClock{}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	for s.Stats().Flushes == 0 {
		<-time.After(time.Millisecond)
	}
	list(t, s, kubelet(), podKind, 11, pod(t, "a/y", 11))
	stop()
	check(t, <-done)
	s = open(t, s.Config)
	defer s.Close()
	expect(t, "the last list", read(t, s, kubelet()), "11: a/y@11")
}
