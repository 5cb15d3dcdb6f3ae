package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// clockEnv tells a command of FindTimeless by how many seconds its clock is ahead.
const clockEnv = "WEIR_TESTBED_CLOCK"

// clockIn1970 is what such a command is started with.
func clockIn1970(now time.Time) string {
	return clockEnv + "=-" + strconv.FormatInt(now.Unix(), 10)
}

// clockAhead is what such a command is started with to be ahead of this machine.
func clockAhead(by time.Duration) string {
	return clockEnv + "=" + strconv.FormatInt(int64(by/time.Second), 10)
}

// nowOfGo is how Go's own package time begins to tell the time, and what comes in its place. Timers and durations go by
// the monotonic clock, and stay as they are.
const (
	nowOfGo  = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	nowAhead = nowOfGo + "\tsec += clockAhead\n"
	ahead    = `
var clockAhead = func() int64 {
	v, _ := syscall.Getenv("` + clockEnv + `")
	n, err := atoi(v)
	if err != nil {
		return 0
	}
	return int64(n)
}()
`
)

// FindTimeless builds commands whose clock shows what the testbed wants: nothing but the whole process believes it, and
// a clock that is handed around inside would leave out what asks the system. Linux can shift no process's wall clock.
// So Go's package time is compiled with another time.Now; no line of the product differs.
func FindTimeless(ctx context.Context, s *proc.Spawner, progress func(string), commands ...string) (Binaries, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's sources: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return nil, fmt.Errorf("find Go's sources: %w", err)
	}
	if source, err = shift(source); err != nil {
		return nil, fmt.Errorf("%s: %w", original, err)
	}
	dir, err := s.Scratch("timeless")
	if err != nil {
		return nil, err
	}
	altered, overlay := filepath.Join(dir, "time.go.txt"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: altered}})
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{altered: source, overlay: text} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return nil, err
		}
	}
	packages := make([]string, 0, len(commands))
	for _, c := range commands {
		packages = append(packages, "./impl/cmd/"+c)
	}
	return compile(ctx, s, gobuild.Spec{Name: "weir without a clock", Overlay: overlay}, "bin-timeless", progress,
		packages...)
}

// shift alters the source of Go's package time.
func shift(source []byte) ([]byte, error) {
	if bytes.Count(source, []byte(nowOfGo)) != 1 || !bytes.Contains(source, []byte("import (\n")) {
		return nil, fmt.Errorf("time.Now is not what this testbed knows how to shift: look at nowOfGo")
	}
	source = bytes.Replace(source, []byte(nowOfGo), []byte(nowAhead), 1)
	source = bytes.Replace(source, []byte("import (\n"), []byte("import (\n\t\"syscall\"\n"), 1)
	return append(source, ahead...), nil
}
