package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	unit = contract.InstallerName + ".service"
	// Folder is where programs and log are, on the machine, until the work has ended.
	Folder = "/var/lib/" + contract.InstallerName
	// Log is the file in which the work tells what it does.
	Log = Folder + "/log"

	poll = 500 * time.Millisecond
	// mostErrors is for how many polls, a minute, systemd may give no answer: it may be restarting.
	mostErrors = 120
	// mostLog bounds what is shown of the log.
	mostLog = 1 << 20
	// mostResult bounds what Kubernetes keeps of how a container ended.
	mostResult = 1000
)

// Errand is what a machine is to do.
type Errand struct {
	Root     string     // of the machine, as this process reaches it
	Programs []*os.File // that the machine gets, by their names; the first is run
	Args     []string   // of the first
	// Run runs a command on the machine. The error has what it said.
	Run    func(ctx context.Context, name string, args ...string) (string, error)
	Clock  clock.WithTicker
	Out    io.Writer // what the work says
	Result io.Writer // how it failed, in a line; nil: nobody is told

	shown int64  // of the log
	last  string // its last line
}

// Enter makes the root of the machine that of this process.
func Enter(root string) error {
	if err := syscall.Chroot(root); err != nil {
		return fmt.Errorf("go to the machine's root, %s: %w: want hostPID and a privileged container", root, err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin")
}

// Do has the machine do the work, and waits for its end. If the context ends, the work goes on.
func (e *Errand) Do(ctx context.Context) error {
	if err := e.do(ctx); err != nil {
		if e.Result != nil {
			_, _ = fmt.Fprintf(e.Result, "%.*s", mostResult, err)
		}
		return err
	}
	return nil
}

func (e *Errand) do(ctx context.Context) error {
	if _, err := e.ended(ctx, "what was begun before"); err != nil {
		return err
	}
	if err := e.clear(ctx); err != nil {
		return err
	}
	if err := e.begin(ctx); err != nil {
		return errors.Join(err, e.clear(ctx))
	}
	s, err := e.ended(ctx, "the work")
	if err != nil {
		return err
	}
	e.show()
	if err := e.clear(ctx); err != nil {
		return err
	}
	switch {
	case s.gone(): // only a machine that was restarted meanwhile forgets it, and then this process would not be here
		return errors.New("the machine does not know how it ended: look at the Node's condition " + contract.JoinedCondition)
	case s.result != "success":
		return errors.New(cmp.Or(e.last, fmt.Sprintf("it failed without a word: %s, exit code %s", s.result, s.code)))
	}
	return nil
}

// state is what systemd knows of the unit.
type state struct{ load, active, sub, result, code string }

func (s state) gone() bool { return s.load == "not-found" }

// runs reports whether the work goes on. One that has ended well is active, because it remains.
func (s state) runs() bool {
	return !s.gone() && s.active != "inactive" && s.active != "failed" && s.sub != "exited"
}

func (e *Errand) look(ctx context.Context) (s state, err error) {
	out, err := e.Run(ctx, "systemctl", "show", "--property=LoadState,ActiveState,SubState,Result,ExecMainStatus", unit)
	if err != nil {
		return s, fmt.Errorf("ask the machine's systemd: %w", err)
	}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if field := map[string]*string{
			"LoadState": &s.load, "ActiveState": &s.active, "SubState": &s.sub, "Result": &s.result, "ExecMainStatus": &s.code,
		}[key]; field != nil {
			*field = value
		}
	}
	if s.load == "" || s.active == "" {
		return s, fmt.Errorf("ask the machine's systemd: it says %.80q of %s", out, unit)
	}
	return s, nil
}

// ended waits until the unit does not run, and tells how it is then.
func (e *Errand) ended(ctx context.Context, what string) (state, error) {
	again := e.Clock.NewTicker(poll)
	defer again.Stop()
	for failed := 0; ; {
		s, err := e.look(ctx)
		switch {
		case err == nil && !s.runs():
			return s, nil
		case err == nil:
			failed = 0
		default:
			if failed++; failed == 1 {
				fmt.Fprintln(e.Out, err)
			}
			if failed > mostErrors {
				return s, err
			}
		}
		e.show()
		select {
		case <-again.C():
		case <-ctx.Done():
			return s, fmt.Errorf("%s: it goes on: %w", what, errors.Join(context.Cause(ctx), err))
		}
	}
}

// clear takes away the unit that has ended, and the folder.
func (e *Errand) clear(ctx context.Context) error {
	s, err := e.look(ctx)
	if err != nil {
		return err
	}
	verb := map[string]string{"active": "stop", "failed": "reset-failed"}[s.active]
	if verb != "" {
		if _, err := e.Run(ctx, "systemctl", verb, unit); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(e.Root, Folder))
}

// begin has systemd start the work.
func (e *Errand) begin(ctx context.Context) error {
	if err := os.Mkdir(filepath.Join(e.Root, Folder), 0o700); err != nil {
		return err
	}
	for _, p := range e.Programs {
		if err := put(filepath.Join(e.Root, Folder, filepath.Base(p.Name())), p); err != nil {
			return fmt.Errorf("copy %s to the machine: %w", filepath.Base(p.Name()), err)
		}
	}
	e.shown, e.last = 0, ""
	args := []string{
		"--unit=" + unit, "--description=Weir: lead the kubelet to its hub, or back", "--remain-after-exit", "--quiet", "--",
		Folder + "/" + filepath.Base(e.Programs[0].Name()),
	}
	_, err := e.Run(ctx, "systemd-run", append(args, e.Args...)...)
	return err
}

// put writes a program.
func put(path string, from io.ReadSeeker) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// show shows what the log has got.
func (e *Errand) show() {
	f, err := os.Open(filepath.Join(e.Root, Log))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		fmt.Fprintln(e.Out, err)
		return
	}
	defer f.Close()
	if e.shown >= mostLog {
		return
	}
	b, err := io.ReadAll(io.NewSectionReader(f, e.shown, mostLog-e.shown))
	if err != nil {
		return
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1] // the rest is being written
	e.shown += int64(len(b))
	_, _ = e.Out.Write(b)
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			e.last = string(line)
		}
	}
}
