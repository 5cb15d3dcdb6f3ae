package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Commands are all that a program does.
type Commands struct {
	Program string // as the user calls it
	About   string // a sentence, without the program's name
	Failure string // what else is a failure, for --help
	All     []Command
}

// Run runs the command that args name. It returns ErrHelp after --help, and usage errors for ExitCode.
func (c Commands) Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(stdout, c.Program, Version())
		return nil
	}
	all := c.all()
	if len(args) == 0 || isHelp(args[0]) {
		c.help(stdout, all)
		return nil
	}
	if args[0] == completeCommand {
		return complete(ctx, all, args[1:], stdout)
	}
	line := strings.Join(args, " ") + " "
	for _, one := range all {
		if strings.HasPrefix(line, one.Name+" ") {
			return one.Run(ctx, args[strings.Count(one.Name, " ")+1:], stdout, stderr)
		}
	}
	meant := slices.DeleteFunc(slices.Clone(all), func(o Command) bool { return !strings.HasPrefix(o.Name, args[0]+" ") })
	switch {
	case len(meant) == 0:
		meant = all
	case len(args) > 1 && isHelp(args[1]):
		c.help(stdout, meant)
		return nil
	}
	var names []string
	for _, one := range meant {
		names = append(names, one.Name)
	}
	return Usage("command", strings.Join(args, " "), strings.Join(names, ", ")+"; see "+c.Program+" --help")
}

// all are the commands, and those that every program has.
func (c Commands) all() []Command {
	all := append(slices.Clone(c.All), completion(c.Program))
	return append(all, page{c.Program, c.About, c.Failure, all}.command())
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-h" || arg == "help" }

func (c Commands) help(w io.Writer, of []Command) {
	fmt.Fprintf(w, "%s %s\n\nUsage:\n", c.Program, c.About)
	for _, one := range of {
		fmt.Fprintf(w, "  %s %-34s %s\n", c.Program, one.Name+" "+one.Args, one.About)
	}
	fmt.Fprintf(w, "  %s --version\n\nEach command has --help. Exit codes: 0 success, 1 failure%s, 2 wrong usage.\n",
		c.Program, c.Failure)
}
