package commands

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
)

// Run does what a command is for, after its flags were read. args are its arguments, as many as New was told.
type Run func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Any stands for any number of arguments.
const Any = -1

// New makes a command. use is its name and what follows it, as in "create NAME"; about is what it does, in half a
// sentence. takes is how many arguments it has, or Any. declare declares its flags on fs and returns what runs then.
func New(use, about string, takes int, declare func(fs *pflag.FlagSet) Run) *cobra.Command {
	c := &cobra.Command{Use: use, Short: about, DisableFlagsInUseLine: true}
	c.Flags().SortFlags = false
	run := declare(c.Flags())
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) != takes && takes != Any {
			return cli.Usage("arguments", strings.Join(args, " "), c.UseLine())
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return run(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}
