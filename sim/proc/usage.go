package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc/<pid>/stat: USER_HZ is 100 on every architecture that Go runs on.
const clockTick = time.Second / 100

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
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Usage{}, err
	}
	if u.CPU, err = parseCPU(string(stat)); err != nil {
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

// parseCPU reads fields 14 and 15 of /proc/<pid>/stat. Field 2 is the command in parentheses and may hold
// anything, so fields are counted after the last parenthesis.
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("parse stat %q: too short", stat)
	}
	var ticks int64
	for _, f := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse stat %q: %w", stat, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
