package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// machine is a root and a systemd that knows one transient unit.
type machine struct {
	t    *testing.T
	root string
	work func(args []string, log *os.File) error // what the program does

	state string // as systemctl show prints it
	runs  int
	said  []string
}

const (
	none   = "LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\nExecMainStatus=0\n"
	during = "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nExecMainStatus=0\n"
	well   = "LoadState=loaded\nActiveState=active\nSubState=exited\nResult=success\nExecMainStatus=0\n"
	badly  = "LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=1\n"
)

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, root: t.TempDir(), state: none}
	if err := os.MkdirAll(filepath.Join(m.root, "/var/lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.work = func([]string, *os.File) error { return nil }
	return m
}

func (m *machine) run(_ context.Context, name string, args ...string) (string, error) {
	m.said = append(m.said, name+" "+args[0])
	switch {
	case name == "systemd-run":
		if m.state != none {
			return "", errors.New("Unit weir-installer.service was already loaded or has a fragment file")
		}
		m.runs++
		i := 0
		for args[i] != "--" {
			i++
		}
		program := args[i+1]
		if info, err := os.Stat(filepath.Join(m.root, program)); err != nil || info.Mode() != 0o700 {
			m.t.Errorf("the unit runs %s: %v, %v", program, info, err)
		}
		m.state = during
		log, err := os.OpenFile(filepath.Join(m.root, Log), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return "", err
		}
		defer log.Close()
		if err := m.work(args[i+2:], log); err != nil {
			fmt.Fprintln(log, err)
			m.state = badly
		} else if m.state == during {
			m.state = well
		}
	case args[0] == "show":
		return m.state, nil
	case args[0] == "stop" && m.state == well, args[0] == "reset-failed" && m.state == badly:
		m.state = none
	default:
		m.t.Errorf("%s %v, and the unit is %q", name, args, m.state)
	}
	return "", nil
}

// quick is a clock of which tickers run a hundred times as fast.
type quick struct{ clock.RealClock }

func (quick) NewTicker(d time.Duration) clock.Ticker { return clock.RealClock{}.NewTicker(d / 100) }

func (m *machine) errand() (*Errand, *bytes.Buffer, *bytes.Buffer) {
	m.t.Helper()
	e := &Errand{Root: m.root, Args: []string{"node", "install"}, Run: m.run, Clock: quick{}}
	dir := m.t.TempDir()
	for _, name := range []string{"kubectl-weir", "weir-hub"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("program "+name), 0o755); err != nil {
			m.t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			m.t.Fatal(err)
		}
		m.t.Cleanup(func() { f.Close() })
		e.Programs = append(e.Programs, f)
	}
	var out, result bytes.Buffer
	e.Out, e.Result = &out, &result
	return e, &out, &result
}

// left tells what is left of an errand on the machine.
func (m *machine) left() string {
	if _, err := os.Stat(filepath.Join(m.root, Folder)); err == nil {
		return Folder
	}
	if m.state != none {
		return m.state
	}
	return ""
}

// TestErrand: the machine does the work, the container shows what it says, and tells how it failed; nothing is left.
func TestErrand(t *testing.T) {
	m := newMachine(t)
	m.work = func(args []string, log *os.File) error {
		if text, err := os.ReadFile(filepath.Join(m.root, Folder, "weir-hub")); err != nil ||
			string(text) != "program weir-hub" {
			t.Errorf("the machine has %q, %v", text, err)
		}
		fmt.Fprintln(log, "does", args)
		return nil
	}
	e, out, result := m.errand()
	if err := e.Do(t.Context()); err != nil || out.String() != "does [node install]\n" || result.Len() > 0 ||
		m.left() != "" {
		t.Errorf("%v; it said %q, %q; left: %s", err, out, result, m.left())
	}
	m.work = func([]string, *os.File) error {
		return errors.New("preflight: disk: /var/lib has 3 MB free: want 512; nothing was changed")
	}
	e, out, result = m.errand()
	if err := e.Do(t.Context()); err == nil || err.Error() != result.String() ||
		result.String() != "preflight: disk: /var/lib has 3 MB free: want 512; nothing was changed" || m.left() != "" {
		t.Errorf("%v; it said %q, %q; left: %s", err, out, result, m.left())
	}
}

// TestBefore: what an earlier container has begun is waited for, and then done once more; never two at a time.
func TestBefore(t *testing.T) {
	for name, was := range map[string]string{"it runs": during, "it ended well": well, "it failed": badly} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.state = was
			if err := os.MkdirAll(filepath.Join(m.root, Folder, "more"), 0o755); err != nil {
				t.Fatal(err)
			}
			e, _, _ := m.errand()
			looks := 0
			e.Run = func(ctx context.Context, name string, args ...string) (string, error) {
				if name == "systemd-run" && m.state == during {
					t.Error("two at a time")
				}
				if looks++; looks == 5 && was == during {
					m.state = well
				}
				return m.run(ctx, name, args...)
			}
			if err := e.Do(t.Context()); err != nil || m.runs != 1 || m.left() != "" {
				t.Errorf("%v, %d runs, left: %s", err, m.runs, m.left())
			}
		})
	}
}

// TestGoesOn: a container that is told to stop leaves the work and its programs alone.
func TestGoesOn(t *testing.T) {
	m := newMachine(t)
	ctx, cancel := context.WithCancel(t.Context())
	e, _, _ := m.errand()
	e.Run = func(c context.Context, name string, args ...string) (string, error) {
		out, err := m.run(c, name, args...)
		if name == "systemd-run" {
			m.state = during
			cancel()
		}
		return out, err
	}
	if err := e.Do(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "it goes on") ||
		m.left() != Folder || m.state != during {
		t.Errorf("%v, left: %s, %s", err, m.left(), m.said)
	}
}

// TestNoSystemd: what does not answer as systemd does is told as such, after a while.
func TestNoSystemd(t *testing.T) {
	m := newMachine(t)
	e, _, result := m.errand()
	asked := 0
	e.Run = func(context.Context, string, ...string) (string, error) {
		asked++
		return "System has not been booted with systemd", nil
	}
	if err := e.Do(t.Context()); err == nil ||
		!strings.Contains(result.String(), `it says "System has not been booted with systemd"`) || m.left() != "" ||
		asked != mostErrors+1 {
		t.Errorf("asked %d times: %v, %s", asked, err, result)
	}
}
