package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A process of this test's own stands in for one inside a container: its control groups are those of the test.
func TestStranger(t *testing.T) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	group := strings.TrimSpace(strings.SplitN(string(groups), "\n", 2)[0])
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := "weir-strange-command" // longer than what the kernel keeps
	path := filepath.Join(t.TempDir(), name)
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, sleep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := InContainer(group, name); err == nil {
		t.Fatal("found before it was started")
	}
	p, err := s.Start(Spec{Name: name, Path: path, Args: []string{"600"}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := InContainer(group, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := InContainer("no such group", name); err == nil {
		t.Error("found in another container")
	}
	if u, err := x.Usage(); err != nil || x.PID() != p.PID() || u.RSS == 0 {
		t.Errorf("process %d uses %+v, %v; want process %d", x.PID(), u, err, p.PID())
	}
	p.Kill()
	<-x.Done()
	if _, err := x.Usage(); err == nil || x.Running() {
		t.Error("it still runs")
	}
	x.Forget() // also when it has ended
	x.Forget()
}
