package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/weir-edge/weir/impl/contract"
)

// Where things are on a machine.
const (
	etc          = "/etc/weir"
	programs     = "/usr/local/lib/weir"
	hubProgram   = contract.HubProgram
	hubConfig    = etc + "/hub.yaml"
	hubNext      = hubConfig + ".next"     // on trial
	localPair    = etc + "/kubelet.pem"    // by which a kubelet is its node at its hub, and nowhere else
	localCA      = etc + "/kubelet-ca.crt" // who signed it
	proxyEnv     = etc + "/proxy.env"      // by what the kubelet calls the cloud, for the hub
	cloudCA      = etc + "/cloud-ca.crt"   // of former versions, and so are the next two: they were copies
	clientCA     = etc + "/client-ca.crt"
	nodePair     = etc + "/node.pem"
	tokenFile    = etc + "/bootstrap-token"
	kubeletConf  = etc + "/kubelet.conf"
	authority    = etc + "/node-authority.crt"     // the hub writes it
	authorityKey = etc + "/node-authority.key.pem" // likewise
	storeKey     = etc + "/store.key"              // likewise
	hubData      = "/var/lib/weir-hub"
	forPod       = "/var/lib/weir/coordinator/certificates" // where weir-manager's Pod looks
	podData      = "/var/lib/weir/coordinator/data"         // what that Pod keeps: Leases
	units        = "/etc/systemd/system"
	hubUnit      = units + "/" + hubService
	volatile     = "/run/systemd/system/kubelet.service.d"
	lasting      = units + "/kubelet.service.d"
	hubTrial     = "/run/systemd/system/" + hubService + ".d"
	dropIn       = "/90-weir.conf"
	state        = "/var/lib"
	journalFile  = state + "/weir-install.json"

	hubService     = "weir-hub.service"
	kubeletService = "kubelet.service"
	half           = ".weir-tmp" // of a file that is being written
)

// maxFile bounds what is read of a machine.
const maxFile = 1 << 20

// Host is the machine. Tests give a folder for its root, and what its systemd is.
type Host struct {
	Root string // "": /
	// Run runs a command; nil: it is really run. The error has what it said.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// Disk tells how many bytes are free in a folder, and whether a restart of the machine empties it; nil: the system is
	// asked.
	Disk func(path string) (free uint64, volatile bool, err error)
	// Changed is told of each change; nil: nobody is. Tests cut the power there.
	Changed func(what string)
}

func (h *Host) fill() {
	if h.Root == "" {
		h.Root = "/"
	}
	if h.Run == nil {
		h.Run = Run
	}
	if h.Disk == nil {
		h.Disk = free
	}
	if h.Changed == nil {
		h.Changed = func(string) {}
	}
}

// at is a path of the machine as this process reaches it.
func (h *Host) at(path string) string { return filepath.Join(h.Root, path) }

func (h *Host) there(path string) bool {
	_, err := os.Lstat(h.at(path))
	return err == nil
}

func (h *Host) read(path string) ([]byte, error) {
	f, err := os.Open(h.at(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s: it has more than %d bytes", path, maxFile)
	}
	return b, err
}

// file is one that Join writes.
type file struct {
	path    string
	mode    fs.FileMode
	content []byte
}

// same reports whether it is there as it should be.
func (h *Host) same(f file) bool {
	info, err := os.Lstat(h.at(f.path))
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != f.mode || info.Size() != int64(len(f.content)) {
		return false
	}
	now, err := os.ReadFile(h.at(f.path))
	return err == nil && bytes.Equal(now, f.content)
}

// put writes a file at once and durably. One that is as it should be is left alone.
func (h *Host) put(f file) (changed bool, err error) {
	if h.same(f) {
		return false, nil
	}
	if err := h.makeFor(f.path); err != nil {
		return false, err
	}
	err = h.swap(f.path, "wrote", func(half string) error {
		w, err := os.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, f.mode)
		if err != nil {
			return err
		}
		_, err = w.Write(f.content)
		return errors.Join(err, w.Chmod(f.mode), w.Sync(), w.Close())
	})
	return err == nil, err
}

// swap puts what make makes beside a path in its place, at once and durably.
func (h *Host) swap(path, did string, make func(half string) error) error {
	at := h.at(path)
	if err := os.Remove(at + half); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be a link of somebody's
		return err
	}
	if err := make(at + half); err != nil {
		return err
	}
	h.Changed("half of " + path)
	if err := errors.Join(os.Rename(at+half, at), sync(filepath.Dir(at))); err != nil {
		return err
	}
	h.Changed(did + " " + path)
	return nil
}

// makeFor makes the folder of a file.
func (h *Host) makeFor(path string) error {
	for _, dir := range h.missing(filepath.Dir(path)) {
		if err := os.Mkdir(h.at(dir), 0o755); err != nil {
			return err
		}
		if err := sync(filepath.Dir(h.at(dir))); err != nil {
			return err
		}
		h.Changed("made " + dir)
	}
	return nil
}

// missing are the folders of a path that are not there, the outermost first.
func (h *Host) missing(dir string) (all []string) {
	for ; dir != "/" && !h.there(dir); dir = filepath.Dir(dir) {
		all = append(all, dir)
	}
	slices.Reverse(all)
	return all
}

// remove takes a file, or a folder with all that is in it. It is no error that it is not there.
func (h *Host) remove(path string) (was bool, err error) {
	if was = h.there(path); !was {
		return false, nil
	}
	if err := os.RemoveAll(h.at(path)); err != nil {
		return true, err
	}
	err = sync(filepath.Dir(h.at(path)))
	h.Changed("removed " + path)
	return true, err
}

// removeEmpty takes a folder if nothing is in it.
func (h *Host) removeEmpty(dir string) error {
	if all, err := os.ReadDir(h.at(dir)); err != nil || len(all) > 0 {
		return nil //nolint:nilerr // it is not there, or somebody else uses it
	}
	_, err := h.remove(dir)
	return err
}

// systemctl asks systemd for something, and tells of it if that changes anything.
func (h *Host) systemctl(ctx context.Context, args ...string) (string, error) {
	out, err := h.Run(ctx, "systemctl", args...)
	if !slices.Contains([]string{"cat", "is-active", "is-system-running"}, args[0]) {
		h.Changed("systemctl " + strings.Join(args, " "))
	}
	return out, err
}

func (h *Host) active(ctx context.Context, service string) bool {
	_, err := h.systemctl(ctx, "is-active", "--quiet", service)
	return err == nil
}

// has reports whether the machine has an address.
func (h *Host) has(ctx context.Context, address string) (bool, error) {
	out, err := h.Run(ctx, "ip", "-o", "address", "show", "to", address)
	return strings.TrimSpace(out) != "", err
}

// drop takes an address away that the hub's unit has given the machine.
func (h *Host) drop(ctx context.Context, address string) error {
	if has, err := h.has(ctx, address); err != nil || !has {
		return err
	}
	_, err := h.Run(ctx, "ip", "address", "del", address+"/32", "dev", "lo")
	h.Changed("dropped " + address)
	return err
}

// Run runs a command. Its error has what it said.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		what := strings.Join(strings.Fields(said.String()), " ")
		return out.String(), fmt.Errorf("%s %s: %w: %.500s", name, strings.Join(args, " "), err, what)
	}
	return out.String(), nil
}

func free(path string) (uint64, bool, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, false, err
	}
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	return s.Bavail * uint64(s.Bsize), s.Type == tmpfs || s.Type == ramfs, nil //nolint:gosec // a size of blocks
}

func sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// clear removes a file, if there is one.
func (h *Host) clear(path string) error {
	_, err := h.remove(path)
	return err
}
