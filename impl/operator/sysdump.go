package operator

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

// sysdumpCommand is weir sysdump; program is how the user calls it.
func sysdumpCommand(program string) *cobra.Command {
	return commands.New("sysdump", "write one archive for a person who is asked for help, without secrets", 0,
		func(fs *pflag.FlagSet) commands.Run { return sysdumps(fs, program) })
}

func sysdumps(fs *pflag.FlagSet, program string) commands.Run {
	now := time.Now().UTC()
	path := fs.StringP("output", "o", "",
		"file that is written, ending in .tar.gz; default: weir-sysdump-<time>.tar.gz in this folder")
	local := fs.Bool("node-only", false, "take what this machine knows, and ask no cluster")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		if *path == "" {
			*path = "weir-sysdump-" + now.Format("20060102-150405") + ".tar.gz"
		}
		if !strings.HasSuffix(*path, ".tar.gz") {
			return cli.Usage("--output", *path, "the path of a file that does not exist, ending in .tar.gz")
		}
		c := collector{}
		if !*local {
			var err error
			if c.cluster, err = flags.Cluster(); err != nil {
				return err
			}
		}
		var err error
		if c.archive, err = createArchive(*path, now); err != nil {
			return cli.Usage("--output", *path, "the path of a file that does not exist and can be written: "+err.Error())
		}
		if err := c.close(c.fill(ctx, program)); err != nil {
			return err
		}
		fmt.Fprintf(stdout,
			"%s is written. Secrets are taken out as far as they can be told; look through it before you send it\n", *path)
		return nil
	}
}

func (c *collector) fill(ctx context.Context, program string) error {
	if err := c.add("version.txt", []byte(program+" "+cli.Version()+"\n")); err != nil {
		return err
	}
	if c.cluster != nil {
		if err := c.ofCluster(ctx); err != nil {
			return err
		}
	}
	if err := c.ofNode(ctx); err != nil {
		return err
	}
	return ctx.Err()
}
