package node

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/install"
)

// terminationLog is where a container says how it failed.
const terminationLog = "/dev/termination-log"

// installs is what a Job of weir-manager runs on a node. It has the machine run the very same command with --on-host.
func installs(fs *pflag.FlagSet) commands.Run {
	pool := fs.String("pool", "", "pool that the node is to be in; empty: none, and it leaves the one that it is in")
	here := fs.Bool("on-host", false, "this is not a container but the machine itself: do it")
	host := fs.String("host-root", "/proc/1/root", "root of the machine, as this container sees it")
	_ = fs.MarkHidden("host-root")
	r := root(fs)
	return func(ctx context.Context, _ []string, _, stderr io.Writer) error {
		if why := validation.IsValidLabelValue(*pool); len(why) > 0 {
			return cli.Usage("--pool", *pool, "the name of a pool, or empty")
		}
		if *here {
			return settle(ctx, *r, *pool, stderr)
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		e := Errand{
			Root: "/", Args: []string{"node", "install", "--on-host", "--pool=" + *pool}, Run: install.Run,
			Clock: clock.RealClock{}, Out: stderr,
		}
		for _, path := range []string{self, filepath.Join(filepath.Dir(self), "weir-hub")} {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			e.Programs = append(e.Programs, f)
		}
		if f, err := os.OpenFile(terminationLog, os.O_WRONLY, 0); err == nil {
			defer f.Close()
			e.Result = f
		}
		if err := Enter(*host); err != nil {
			return err
		}
		// A program that is told to stop has nothing to report: the work goes on. Exit codes 1 and 2 say that it has failed,
		// and nothing else does.
		return e.Do(context.WithoutCancel(ctx))
	}
}

// settle does it, and writes what it does for the container that waits, too.
func settle(ctx context.Context, root, pool string, stderr io.Writer) (err error) {
	out := stderr
	log, none := os.OpenFile(filepath.Join(root, Log), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if none == nil {
		defer log.Close()
		defer func() {
			if err != nil {
				fmt.Fprintln(log, strings.Join(strings.Fields(err.Error()), " ")) // a line: what the container says last of all
			}
		}()
		out = io.MultiWriter(log, stderr)
	}
	o := install.Config{
		Pool: pool, Coordinator: true, Pods: true, Out: out, Timeout: 2 * time.Minute,
		Host: install.Host{Root: cmp.Or(root, "/")},
	}
	if pool != "" {
		if o.Hub, err = findHub(); err != nil {
			return err
		}
	}
	i, err := install.New(o)
	if err != nil {
		return err
	}
	return i.Settle(ctx)
}
