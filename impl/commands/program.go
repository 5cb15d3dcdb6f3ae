package commands

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/impl/cli"
)

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
	strict(root)
	return root.ExecuteContext(ctx)
}

// strict has help and completion refuse words that name nothing. cobra shows what is nearest, and is content.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				switch {
				case err != nil || len(rest) == 0:
					return err
				case of.HasSubCommands():
					return group(of, rest)
				}
				return cli.Usage("arguments", strings.Join(args, " "), c.CommandPath()+" "+name(of, root))
			}
		case "completion":
			c.Args, c.RunE, c.SuggestionsMinimumDistance = cobra.ArbitraryArgs, group, 2
			for _, shell := range c.Commands() {
				shell.Args = func(_ *cobra.Command, args []string) error {
					if len(args) > 0 {
						return cli.Usage("arguments", strings.Join(args, " "), shell.CommandPath())
					}
					return nil
				}
			}
		}
	}
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
		if bad := cli.BadValue(err); bad != nil {
			bad.Allowed += "; see " + c.CommandPath() + " --help"
			return bad
		}
		return cli.Usage("flags", err.Error(), "see "+c.CommandPath()+" --help")
	})
	root.AddCommand(manual())
	return root
}
