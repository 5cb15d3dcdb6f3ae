package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Command is one of the things that a program does.
type Command struct {
	Name  string // "scenario run"
	Args  string // what follows, for the usage line
	About string
	Run   func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

// AnyArgs stands for any number of arguments.
const AnyArgs = -1

// ParseArgs reads the flags of a command; usage is the command as the user calls it, want is how many arguments it
// takes.
func ParseArgs(fs *pflag.FlagSet, usage string, args []string, want int, stdout io.Writer) error {
	if c, ok := stdout.(*catcher); ok {
		c.usage, c.flags = usage, fs
		return ErrHelp
	}
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "Usage:\n  %s\n\nFlags:\n%s", usage, fs.FlagUsages())
		return ErrHelp
	case err != nil:
		return Usage("flags", strings.Join(args, " "), err.Error())
	case fs.NArg() != want && want != AnyArgs:
		return Usage("arguments", strings.Join(fs.Args(), " "), usage)
	}
	return nil
}

// catcher takes the flags of a command in place of what --help prints of them: so completion and the manual go by the
// very flags that the command has.
type catcher struct {
	usage string
	flags *pflag.FlagSet
}

// Write implements io.Writer.
func (c *catcher) Write(text []byte) (int, error) { return len(text), nil }

// flagsOf are the usage line and the flags of a command; its flags are nil if it reads none by ParseArgs.
func flagsOf(ctx context.Context, one Command) (usage string, flags *pflag.FlagSet) {
	var c catcher
	_ = one.Run(ctx, []string{"--help"}, &c, io.Discard)
	return c.usage, c.flags
}
