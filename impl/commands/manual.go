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

// manual is the command that prints the manual page, one for the whole program, which cobra has none of.
func manual() (c *cobra.Command) {
	c = New("man", "print the manual page, for man -l", 0, func(*pflag.FlagSet) Run {
		return func(_ context.Context, _ []string, stdout, _ io.Writer) error { return page(c.Root(), stdout) }
	})
	return c
}

// page writes it in the macros of man(7). It has no date, so that it is the same whenever it is made.
func page(root *cobra.Command, w io.Writer) error {
	var b strings.Builder
	version, _, _ := strings.Cut(cli.Version(), " ")
	about, codes, _ := strings.Cut(root.Long, "\n\nExit codes: ")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"Weir\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(root.Name()), roff(version),
		root.Name(), roff(strings.TrimPrefix(about, root.DisplayName()+" ")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[\n.I flags\n]\n.SH COMMANDS\n", roff(root.DisplayName()))
	shared := map[string]int{} // by how many commands
	for _, one := range leaves(root) {
		one.LocalFlags().VisitAll(func(f *pflag.Flag) { shared[entry(f)]++ })
	}
	var common []string
	for _, one := range leaves(root) {
		fmt.Fprintf(&b, ".SS %s\n%s.\n.PP\n.B %s\n", roff(name(one, root)), line(upper(one.Short)), roff(one.UseLine()))
		also := false
		one.LocalFlags().VisitAll(func(f *pflag.Flag) {
			text := entry(f)
			switch {
			case shared[text] < many || text == "":
				b.WriteString(text)
				return
			case !slices.Contains(common, text):
				common = append(common, text)
			}
			also = true
		})
		if also {
			b.WriteString(".PP\nCOMMON FLAGS, too.\n")
		}
	}
	if len(common) > 0 {
		b.WriteString(".SH COMMON FLAGS\n" + strings.Join(common, ""))
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", roff(codes))
	_, err := io.WriteString(w, b.String())
	return err
}

// many is how many commands have a flag that is told of once, for all of them.
const many = 5

// entry is what the page says of a flag.
func entry(f *pflag.Flag) string {
	if f.Hidden || f.Name == "help" {
		return ""
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	kind, about := pflag.UnquoteUsage(f)
	return fmt.Sprintf(".TP\n.B %s\n%s\n", roff(strings.TrimSpace(name+" "+kind)), line(about))
}

// roff is text that means nothing to roff, which reads ASCII.
func roff(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r < ' ':
			b.WriteByte(' ')
		case r > '~':
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// line is one that does not begin with a control character.
func line(text string) string { return `\&` + roff(text) }

func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
