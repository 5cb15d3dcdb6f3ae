package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// page is the manual page of a program.
type page struct {
	program, about, failure string
	all                     []Command // but the one that prints it
}

// command is the one that prints the page.
func (p page) command() Command {
	return Command{
		Name: "man", About: "print the manual page: man -l <(" + p.program + " man)",
		Run: func(ctx context.Context, args []string, stdout, _ io.Writer) error {
			fs := pflag.NewFlagSet("man", pflag.ContinueOnError)
			if err := ParseArgs(fs, p.program+" man", args, 0, stdout); err != nil {
				return err
			}
			return p.write(ctx, stdout)
		},
	}
}

// write writes it in the macros of man(7). It has no date, so that it is the same whenever it is made.
func (p page) write(ctx context.Context, w io.Writer) error {
	var b strings.Builder
	title := strings.ReplaceAll(p.program, " ", "-")
	version, _, _ := strings.Cut(Version(), " ")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"Weir\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(title), roff(version), title,
		roff(p.about))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[\n.I flags\n]\n.SH COMMANDS\n", roff(p.program))
	commands := append(slices.Clone(p.all), p.command())
	shared := map[string]int{} // by how many commands
	for _, one := range commands {
		if _, flags := flagsOf(ctx, one); flags != nil {
			flags.VisitAll(func(f *pflag.Flag) { shared[entry(f)]++ })
		}
	}
	var common []string
	for _, one := range commands {
		usage, flags := flagsOf(ctx, one)
		if usage == "" {
			usage = strings.TrimSpace(p.program + " " + one.Name + " " + one.Args)
		}
		fmt.Fprintf(&b, ".SS %s\n%s.\n.PP\n.B %s\n", roff(one.Name), line(upper(one.About)), roff(usage))
		if flags == nil {
			continue
		}
		also := false
		flags.VisitAll(func(f *pflag.Flag) {
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
	fmt.Fprintf(&b, ".SH EXIT STATUS\n0 success, 1 failure%s, 2 wrong usage.\n", roff(p.failure))
	_, err := io.WriteString(w, b.String())
	return err
}

// many is how many commands have a flag that is told of once, for all of them.
const many = 5

// entry is what the page says of a flag.
func entry(f *pflag.Flag) string {
	if f.Hidden {
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
