package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
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

// Group makes a command that only has others below it.
func Group(name, about string, of ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: about, Args: cobra.ArbitraryArgs, RunE: group, DisableFlagsInUseLine: true,
		SuggestionsMinimumDistance: 2,
	}
	c.AddCommand(of...)
	return c
}

// group is what a command does that only has others: it shows them, or says which it may have been.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	near := c.SuggestionsFor(args[0])
	var names []string
	for _, one := range leaves(c) {
		first, _, _ := strings.Cut(name(one, c), " ")
		if len(near) == 0 || slices.Contains(near, first) {
			names = append(names, name(one, c.Root()))
		}
	}
	given := strings.TrimSpace(name(c, c.Root()) + " " + strings.Join(args, " "))
	return cli.Usage("command", given, strings.Join(names, ", ")+"; see "+c.CommandPath()+" --help")
}

// name is what is typed for a command behind one above it.
func name(c, above *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), above.CommandPath()))
}

// Program is all that a program does.
type Program struct {
	Name    string // as the user calls it
	About   string // a sentence, without the program's name
	Failure string // what else is a failure, for --help
	All     []*cobra.Command
}

// Run runs the command that args name. Its errors are for cli.ExitCode. A Program runs once: its flags keep what they
// were given.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := p.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

// Leaves are the commands that do something, by their names. Those of cobra are not among them.
func (p Program) Leaves() []*cobra.Command { return leaves(p.root()) }

// root is the program as a command of cobra. It sets no template: with one the linker has to keep every exported method
// that a template could call, and the program is 20 MB larger.
func (p Program) root() *cobra.Command {
	root := Group(strings.ReplaceAll(p.Name, " ", "-"), p.About, p.All...)
	root.Long = fmt.Sprintf("%s %s\n\nExit codes: 0 success, 1 failure%s, 2 wrong usage.", p.Name, p.About, p.Failure)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: p.Name}
	root.Version = cli.Version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cli.Usage("flags", err.Error(), "see "+c.CommandPath()+" --help")
	})
	root.AddCommand(manual())
	return root
}

// leaves are the commands below one that do something, in the order of their names. Those of cobra are not among them.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	for _, one := range c.Commands() {
		switch {
		case !one.IsAvailableCommand() || one.Name() == "help" || one.Name() == "completion":
		case one.HasSubCommands():
			all = append(all, leaves(one)...)
		default:
			all = append(all, one)
		}
	}
	return all
}
