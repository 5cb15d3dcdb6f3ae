package installtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// connect is a process that is connected to the cloud until it is let go.
func connect(to string) {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Println("connected")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// bypass holds that a node tells who is connected to the real kube-apiserver past its hub: this test, of which it
// warns, and a kubelet, which is wrong. The hub is not named.
func (s *systemd) bypass(cloud string, run func(args ...string) (string, error)) {
	t := s.t
	t.Helper()
	if os.Getuid() != 0 {
		return // only root sees it
	}
	s.mu.Lock()
	hub := s.hub.Process().Pid
	s.mu.Unlock()
	says := func(want error, texts ...string) {
		t.Helper()
		out, err := run("check", "--here")
		if (err == nil) != (want == nil) || strings.Contains(out, fmt.Sprintf("(pid %d)", hub)) {
			t.Errorf("check --here: %v, want %v:\n%s", err, want, out)
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("check --here does not say %q:\n%s", text, out)
			}
		}
	}
	to := strings.TrimPrefix(cloud, "https://")
	says(nil, "‼ node edge-1: nothing on it calls the cloud past its hub",
		fmt.Sprintf("%.15s (pid %d) to %s", filepath.Base(os.Args[0]), os.Getpid(), to)) // of a name the kernel keeps 15
	self, err := os.Executable()
	check(t, err)
	kubelet := filepath.Join(t.TempDir(), "kubelet")
	check(t, os.Symlink(self, kubelet))
	cmd := exec.Command(kubelet, to)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	check(t, err)
	says(io.EOF, "× node edge-1: nothing on it calls the cloud past its hub",
		fmt.Sprintf("kubelet (pid %d) to %s", cmd.Process.Pid, to), "operations.md#node-bypass")
	check(t, in.Close())
	check(t, cmd.Wait())
	says(nil, "‼")
}
