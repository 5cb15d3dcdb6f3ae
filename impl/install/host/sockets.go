package host

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is read.
const (
	maxTable   = 64 << 20 // of the connections of a namespace: some 400000
	maxEnviron = 1 << 20
	maxComm    = 64
)

// procFolder is where the kernel tells.
const procFolder = "/proc"

// Process is one that has connections.
type Process struct {
	PID     int    // 0: this root may not look at it
	Command string // as the kernel names it
	Program string // the path of its program; "": it is not told
	// To are the addresses that it is connected to, once for each connection.
	To []netip.AddrPort
}

// APIAddresses are the addresses by which processes of this machine are told to call the Kubernetes API: the variables
// by which pods find it.
func APIAddresses() (all []netip.AddrPort, err error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		text, err := read(of(pid, "environ"), maxEnviron)
		if err != nil {
			continue // it has ended, or is a thread of the kernel
		}
		var host, port string
		for _, v := range strings.Split(string(text), "\x00") {
			if h, ok := strings.CutPrefix(v, "KUBERNETES_SERVICE_HOST="); ok {
				host = h
			}
			if p, ok := strings.CutPrefix(v, "KUBERNETES_SERVICE_PORT="); ok {
				port = p
			}
		}
		addr, err := netip.ParseAddr(host)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			if at := netip.AddrPortFrom(addr.Unmap(), uint16(n)); !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all, nil
}

// Connected are the processes that are connected to one of the addresses, by their numbers.
func Connected(ctx context.Context, to []netip.AddrPort) ([]Process, error) {
	if os.Geteuid() != 0 {
		return nil, errRoot
	}
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	wanted := map[netip.AddrPort]bool{}
	for _, a := range to {
		wanted[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = true
	}
	found, seen := map[string]netip.AddrPort{}, map[string]bool{} // by the link of fd, by namespace
	for _, pid := range pids {
		namespace, err := os.Readlink(of(pid, "ns/net"))
		if err != nil || seen[namespace] {
			continue
		}
		seen[namespace] = true
		for _, table := range []string{"net/tcp", "net/tcp6"} {
			if err := scan(of(pid, table), wanted, found); errors.Is(err, errForm) {
				return nil, err
			} else if err != nil && table == "net/tcp" {
				delete(seen, namespace) // it has ended: another one of its namespace tells
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return owners(pids, found), nil
}

var errRoot = errors.New("only root sees whose connections there are")

// owners are whose sockets they are.
func owners(pids []int, found map[string]netip.AddrPort) (all []Process) {
	hidden, owned := false, map[string]bool{}
	for _, pid := range pids {
		entries, err := os.ReadDir(of(pid, "fd"))
		if err != nil {
			hidden = hidden || errors.Is(err, fs.ErrPermission) // else it has ended
			continue
		}
		p := Process{PID: pid}
		for _, e := range entries {
			link, err := os.Readlink(of(pid, "fd/"+e.Name()))
			if at, ok := found[link]; err == nil && ok {
				p.To, owned[link] = append(p.To, at), true
			}
		}
		if len(p.To) == 0 {
			continue
		}
		comm, _ := read(of(pid, "comm"), maxComm)
		p.Command = strings.TrimSpace(string(comm))
		program, _ := os.Readlink(of(pid, "exe"))
		p.Program = strings.TrimSuffix(program, " (deleted)") // as after an upgrade
		all = append(all, p)
	}
	if !hidden {
		return all
	}
	var unseen Process
	for link, at := range found {
		if !owned[link] {
			unseen.To = append(unseen.To, at)
		}
	}
	if len(unseen.To) > 0 {
		all = append(all, unseen)
	}
	return all
}

func of(pid int, name string) string { return filepath.Join(procFolder, strconv.Itoa(pid), name) }

func processes() (all []int, err error) {
	entries, err := os.ReadDir(procFolder)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	slices.Sort(all)
	return all, err
}

func read(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

var errForm = errors.New("it does not have the form of connections")

// scan reads a table of connections, and notes those that are wanted.
func scan(path string, wanted map[netip.AddrPort]bool, found map[string]netip.AddrPort) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxTable))
	for lines.Scan() {
		at, inode, err := parse(lines.Text())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if inode != "" && wanted[at] {
			found["socket:["+inode+"]"] = at
		}
	}
	return lines.Err()
}

// parse reads a line of net/tcp: where an established connection leads to, and its inode; "": it is none.
func parse(line string) (to netip.AddrPort, inode string, err error) {
	const established = "01"
	fields := strings.Fields(line)
	if len(fields) > 0 && fields[0] == "sl" {
		return to, "", nil
	}
	if len(fields) < 10 {
		return to, "", fmt.Errorf("%.80q: %w", line, errForm)
	}
	if fields[3] != established || fields[9] == "0" {
		return to, "", nil
	}
	host, port, _ := strings.Cut(fields[2], ":")
	raw, err := hex.DecodeString(host)
	n, also := strconv.ParseUint(port, 16, 16)
	if err != nil || also != nil || len(raw) != 4 && len(raw) != 16 {
		return to, "", fmt.Errorf("%.80q: %w", line, errForm)
	}
	for i := 0; i < len(raw); i += 4 { // words, as the processor has them
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	addr, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), fields[9], nil
}
