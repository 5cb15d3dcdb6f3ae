package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// catcher takes the flags of a command in place of what --help prints of them: so completion and the manual go by the very flags that the command has.
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

// manual is the command that prints the manual page.
func (c Commands) manual() Command {
	return Command{Name: "man", About: "print the manual page: man -l <(" + c.Program + " man)", Run: func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		fs := pflag.NewFlagSet("man", pflag.ContinueOnError)
		if err := ParseArgs(fs, c.Program+" man", args, 0, stdout); err != nil {
			return err
		}
		return c.writeManual(ctx, stdout)
	}}
}

// writeManual writes it in the macros of man(7). It has no date, so that it is the same whenever it is made.
func (c Commands) writeManual(ctx context.Context, w io.Writer) error {
	var b strings.Builder
	title := strings.ReplaceAll(c.Program, " ", "-")
	version, _, _ := strings.Cut(Version(), " ")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"Weir\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(title), roff(version), title, roff(c.About))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[\n.I flags\n]\n.SH COMMANDS\n", roff(c.Program))
	for _, one := range c.all() {
		usage, flags := flagsOf(ctx, one)
		if usage == "" {
			usage = strings.TrimSpace(c.Program + " " + one.Name + " " + one.Args)
		}
		fmt.Fprintf(&b, ".SS %s\n%s.\n.PP\n.B %s\n", roff(one.Name), line(upper(one.About)), roff(usage))
		if flags == nil {
			continue
		}
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			kind, about := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(name+" "+kind)), line(about))
		})
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n0 success, 1 failure%s, 2 wrong usage.\n", roff(c.Failure))
	_, err := io.WriteString(w, b.String())
	return err
}

// roff is text that means nothing to roff.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
}

// line is one that does not begin with a control character.
func line(text string) string { return `\&` + roff(text) }

func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
