package commands

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/impl/cli"
)

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
