package installtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/testkit"
)

// socketOf is the environment of the systemctl that this test binary is, too.
const socketOf = "WEIR_TEST_SYSTEMD"

// reply is what systemd answers.
type reply struct {
	Out, Err string
}

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "systemctl", "ip":
	case "kubelet":
		connect(os.Args[1])
		return
	case iam:
		printCredential()
		return
	default:
		os.Exit(m.Run())
	}
	conn, err := net.Dial("unix", os.Getenv(socketOf))
	if err == nil {
		err = json.NewEncoder(conn).Encode(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...))
	}
	var r reply
	if err == nil {
		err = json.NewDecoder(conn).Decode(&r)
	}
	if err == nil && r.Err != "" {
		err = errors.New(r.Err)
	}
	fmt.Print(r.Out)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// systemd runs the units of a machine below a folder.
type systemd struct {
	t       *testing.T
	root    string
	path    string // a folder with systemctl
	socket  string
	stopped sync.WaitGroup

	mu      sync.Mutex
	loaded  string // units of the kubelet, as they were read
	hub     *testkit.Service
	log     string
	address string       // that the machine has for its pods; this machine has it not, so the hub leads none there
	config  string       // kubeconfig of the kubelet that runs; "": none does
	kubelet *realKubelet // nil: renewals of the Lease stand in for it
	failed  error        // of its last heartbeat
}

func newSystemd(t *testing.T, root string) *systemd {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-sd")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &systemd{t: t, root: root, path: dir, socket: filepath.Join(dir, "s"), log: filepath.Join(t.TempDir(), "hub.log")}
	s.hub, err = testkit.NewService(0)
	check(t, err)
	self, err := os.Executable()
	check(t, err)
	for _, name := range []string{"systemctl", "ip"} {
		check(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	l, err := net.Listen("unix", s.socket)
	check(t, err)
	s.stopped.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var args []string
			if json.NewDecoder(conn).Decode(&args) == nil {
				var r reply
				if r.Out, err = s.run(args[0], args[1:]); err != nil {
					r.Err = err.Error()
				}
				_ = json.NewEncoder(conn).Encode(r)
			}
			conn.Close()
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	s.stopped.Go(func() { s.beat(ctx) })
	t.Cleanup(func() {
		stop()
		l.Close()
		s.mu.Lock()
		check(t, s.hub.Close())
		s.mu.Unlock()
		s.stopped.Wait()
		if t.Failed() {
			if text, err := os.ReadFile(s.log); err == nil {
				t.Logf("the hub:\n%s", text[max(0, len(text)-4000):])
			}
		}
	})
	return s
}

func (s *systemd) at(path string) string { return filepath.Join(s.root, path) }

// run is systemctl, or ip.
func (s *systemd) run(name string, args []string) (string, error) {
	if name == "systemctl" {
		return s.do(args)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch line := strings.Join(args, " "); {
	case strings.HasPrefix(line, "-o address show to "):
		return s.address, nil
	case line == "address del "+s.address+"/32 dev lo":
		s.address = ""
		return "", nil
	}
	return "", fmt.Errorf("ip %q", args)
}

func (s *systemd) do(args []string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hub := args[len(args)-1] == "weir-hub.service"
	link := s.at("/etc/systemd/system/multi-user.target.wants/weir-hub.service")
	switch args[0] {
	case "is-system-running":
		return "running\n", nil
	case "cat":
		return s.texts(), nil
	case "is-active":
		if hub && s.hub.Process() == nil || !hub && s.config == "" {
			return "", errors.New("inactive")
		}
	case "daemon-reload":
		s.loaded = s.texts()
	case "enable":
		_ = os.Remove(link)
		return "",
			errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("/etc/systemd/system/weir-hub.service", link))
	case "disable":
		return "", os.Remove(link)
	case "restart":
		if !hub {
			return "", s.startKubelet()
		}
		s.hub.End(syscall.SIGTERM)
		return "", s.startHub()
	case "stop":
		s.hub.Stop()
	default:
		return "", fmt.Errorf("%v is unknown", args)
	}
	return "", nil
}

func (s *systemd) texts() (out string) {
	for _, dir := range []string{
		"/usr/lib/systemd/system/kubelet.service", "/run/systemd/system/kubelet.service.d/90-weir.conf",
		"/etc/systemd/system/kubelet.service.d/90-weir.conf",
	} {
		if text, err := os.ReadFile(s.at(dir)); err == nil {
			out += "# " + dir + "\n" + string(text) + "\n"
		}
	}
	return out
}

// command is how the kubelet is started.
func (s *systemd) command() string {
	commands := slices.DeleteFunc(strings.Split(s.loaded, "\n"),
		func(l string) bool { return !strings.HasPrefix(l, "ExecStart=/") })
	return commands[len(commands)-1]
}

func (s *systemd) startKubelet() error {
	command := s.command()
	_, s.config, _ = strings.Cut(command, "--kubeconfig=")
	if s.kubelet != nil {
		return s.kubelet.start(strings.Fields(command)[1:])
	}
	return nil
}

// startHub starts the real one, and waits until it says that it is ready, as systemd does.
func (s *systemd) startHub() error {
	unit, err := os.ReadFile(s.at("/etc/systemd/system/weir-hub.service"))
	if err != nil {
		return err
	}
	if _, address, ok := strings.Cut(string(unit), "ip address replace "); ok {
		s.address, _, _ = strings.Cut(address, "/")
	}
	_, command, _ := strings.Cut(string(unit), "\nExecStart=")
	command, _, _ = strings.Cut(command, "\n")
	program, config, _ := strings.Cut(command, " --config=")
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.at(program), "--config="+s.at(config))
	cmd.Stdout, cmd.Stderr = log, log
	_, most, _ := strings.Cut(string(unit), "\nFileDescriptorStoreMax=")
	most, _, _ = strings.Cut(most, "\n")
	n, err := strconv.Atoi(most)
	s.hub.Allow(n)
	if err = errors.Join(err, s.hub.Start(cmd)); err != nil {
		return fmt.Errorf("job for weir-hub.service failed: %w", err)
	}
	return nil
}

// beat renews the Lease of the Node as a kubelet does.
func (s *systemd) beat(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		config := s.config
		s.mu.Unlock()
		if config == "" || s.kubelet != nil {
			continue
		}
		err := s.renew(ctx, config)
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
	}
}

func (s *systemd) renew(ctx context.Context, config string) error {
	raw, err := s.kubeconfig(config)
	if err != nil {
		return err
	}
	rc, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return err
	}
	rc.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return err
	}
	leases := client.CoordinationV1().Leases(contract.NodeLeaseNamespace)
	l, err := leases.Get(ctx, nodeName, metav1.GetOptions{})
	if err == nil {
		now := metav1.NewMicroTime(time.Now())
		l.Spec.RenewTime = &now
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
	}
	return err
}

// kubeconfig is one of this machine, with its files where they are below the folder.
func (s *systemd) kubeconfig(path string) (*clientcmdapi.Config, error) {
	raw, err := clientcmd.LoadFromFile(s.at(path))
	if err != nil {
		return nil, err
	}
	at := func(file *string) {
		switch {
		case *file == "":
		case filepath.IsAbs(*file):
			*file = s.at(*file)
		default:
			*file = filepath.Join(filepath.Dir(s.at(path)), *file)
		}
	}
	for _, c := range raw.Clusters {
		at(&c.CertificateAuthority)
	}
	for _, u := range raw.AuthInfos {
		at(&u.ClientCertificate)
		at(&u.ClientKey)
	}
	return raw, nil
}

// heard waits until the kubelet's heartbeats arrive.
func (s *systemd) heard(t *testing.T) {
	t.Helper()
	testkit.Until(t, time.Minute, "the kubelet's heartbeats to arrive", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.config != "" && s.failed == nil
	})
}

// weir starts the command on this machine.
func (s *systemd) weir(program string, stderr io.Writer, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), program, append(args, "--root="+s.root)...)
	cmd.Env = []string{"PATH=" + s.path, socketOf + "=" + s.socket}
	cmd.Stdout, cmd.Stderr = stderr, stderr
	return cmd
}

// restart is systemctl restart.
func (s *systemd) restart(unit string) {
	s.t.Helper()
	for _, args := range [][]string{{"daemon-reload"}, {"restart", unit}} {
		_, err := s.do(args)
		check(s.t, err)
	}
}

// weirs runs the command, which has to succeed, and returns what it says.
func (s *systemd) weirs(program string, args ...string) string {
	s.t.Helper()
	var out bytes.Buffer
	if err := s.weir(program, &out, args...).Run(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out.String())
	}
	return out.String()
}
