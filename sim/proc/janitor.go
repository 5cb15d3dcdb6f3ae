package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// janitorScript reads one line of process groups at a time; the last line counts. When its input ends, it
// kills what is left of these groups, waits up to five seconds for them, and removes the directory "$1".
// The form "kill -s" is the one that both dash and bash take for a group.
const janitorScript = `
trap '' HUP INT TERM
groups=
while IFS= read -r line; do groups=$line; done
for g in $groups; do kill -s KILL -- "-$g" 2>/dev/null; done
tries=0
for g in $groups; do
	while kill -s 0 -- "-$g" 2>/dev/null && [ $tries -lt 50 ]; do tries=$((tries+1)); sleep 0.1; done
done
rm -rf -- "$1"
`

// janitor is the process that cleans up after this one.
type janitor struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	stderr *strings.Builder
}

func startJanitor(scratch string) (*janitor, error) {
	j := &janitor{stderr: &strings.Builder{}}
	j.cmd = exec.CommandContext(context.Background(), "/bin/sh", "-c", janitorScript, "weir-janitor", scratch)
	j.cmd.Dir = "/"
	j.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	j.cmd.Stderr = j.stderr
	// A session of its own: the terminal's Ctrl-C and a signal to the runner's group pass it by.
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if j.input, err = j.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start janitor: %w", err)
	}
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start janitor: %w", err)
	}
	return j, nil
}

func (j *janitor) watch(groups string) { _, _ = io.WriteString(j.input, groups+"\n") }

func (j *janitor) finish() error {
	_ = j.input.Close()
	if err := j.cmd.Wait(); err != nil {
		return fmt.Errorf("janitor: %w: %s", err, strings.TrimSpace(j.stderr.String()))
	}
	return nil
}
