package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what a process uses at one moment.
type Usage struct {
	RSSAnon int64         // bytes of anonymous memory: heap and stacks. The figure to judge by
	RSS     int64         // bytes resident, with pages of the binary and of mapped files, which come and go
	PeakRSS int64         // highest RSS so far
	CPU     time.Duration // user and system time so far
	Threads int
	Files   int // open descriptors; 0 if they may not be looked at
}

// Usage reads what the process uses now.
func (p *Process) Usage() (Usage, error) {
	if !p.Running() {
		return Usage{}, fmt.Errorf("usage of %s: it is not running", p.name)
	}
	u, err := readUsage(p.pid)
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.name, err)
	}
	return u, nil
}

func readUsage(pid int) (Usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return Usage{}, err
	}
	u, err := parseStatus(string(status))
	if err != nil {
		return Usage{}, err
	}
	if u.CPU, err = cpu(pid); err != nil {
		return Usage{}, err
	}
	files, err := os.ReadDir(dir + "/fd")
	if err != nil && !errors.Is(err, os.ErrPermission) { // of another user's process
		return Usage{}, err
	}
	u.Files = len(files)
	return u, nil
}

// parseStatus reads the lines of /proc/<pid>/status that Usage needs. A zombie has no memory lines: zeros.
func parseStatus(status string) (Usage, error) {
	var u Usage
	lines := bufio.NewScanner(strings.NewReader(status))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		var bytes *int64
		switch key {
		case "RssAnon":
			bytes = &u.RSSAnon
		case "VmRSS":
			bytes = &u.RSS
		case "VmHWM":
			bytes = &u.PeakRSS
		case "Threads":
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				return Usage{}, fmt.Errorf("parse status line %q: %w", lines.Text(), err)
			}
			u.Threads = n
			continue
		default:
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("parse status line %q: %w", lines.Text(), err)
		}
		*bytes = kb * 1024
	}
	return u, lines.Err()
}

// cpu is the user and system time of a process so far, to the nanosecond: /proc counts it in hundredths of a second,
// which is as much as some hundred requests take. The clock of another process is numbered by its pid
// (clock_getcpuclockid(3)).
func cpu(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|sched, &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
