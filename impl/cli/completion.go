package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// completeCommand is what shells and kubectl call with the words of a line, the last of them unfinished. Its answer is
// that of cobra, which kubectl reads of plugins: a candidate in each line, with its meaning after a tab, and a
// directive at the end.
const completeCommand = "__complete"

// Directives of cobra.
const (
	orFiles = 0 // where there is no candidate the shell offers files
	noFiles = 4
)

// scripts are for each shell. NAME is the program, FUNC the name of a function.
var scripts = map[string]string{
	"bash": `# In ~/.bashrc: source <(NAME completion bash)
_FUNC() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
    :4) compopt +o default 2>/dev/null ;;
    :*) ;;
    *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <(NAME __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _FUNC NAME
`,
	"zsh": `#compdef NAME
# In ~/.zshrc, after compinit: source <(NAME completion zsh)
_FUNC() {
  local line files=1
  local -a found
  while IFS= read -r line; do
    case $line in
    :4) files=0 ;;
    :*) ;;
    *) found+=("${line%%$'\t'*}") ;;
    esac
  done < <(NAME __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#found} )); then compadd -- "${found[@]}"; elif (( files )); then _files; fi
}
compdef _FUNC NAME
`,
	"fish": `# In ~/.config/fish/completions/NAME.fish: NAME completion fish | source
function __FUNC
  set -l words (commandline -opc)
  NAME __complete $words[2..-1] (commandline -ct) 2>/dev/null | string match -v -r '^:'
end
complete -c NAME -a '(__FUNC)'
`,
}

// completion is the command that prints a script for a shell.
func completion(program string) Command {
	shells := strings.Join(slices.Sorted(maps.Keys(scripts)), ", ")
	return Command{
		Name: "completion", Args: "SHELL", About: "print what makes a shell complete these commands: " + shells,
		Run: func(_ context.Context, args []string, stdout, _ io.Writer) error {
			fs := pflag.NewFlagSet("completion", pflag.ContinueOnError)
			if err := ParseArgs(fs, program+" completion SHELL", args, 1, stdout); err != nil {
				return err
			}
			script, ok := scripts[fs.Arg(0)]
			if !ok {
				return Usage("SHELL", fs.Arg(0), shells)
			}
			name := strings.ReplaceAll(program, " ", "-")
			_, err := io.WriteString(stdout,
				strings.NewReplacer("NAME", name, "FUNC", strings.ReplaceAll(name, "-", "_")).Replace(script))
			return err
		},
	}
}

// complete answers what the last of the words may become.
func complete(ctx context.Context, commands []Command, words []string, stdout io.Writer) error {
	if len(words) == 0 {
		words = []string{""}
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	found, directive := map[string]string{}, orFiles
	if strings.HasPrefix(last, "-") {
		directive = noFiles
		completeFlags(ctx, commands, before, last, found)
	} else {
		for _, one := range commands {
			name := strings.Fields(one.Name)
			if len(name) <= len(before) || !slices.Equal(name[:len(before)], before) {
				continue
			}
			directive = noFiles
			if next := name[len(before)]; strings.HasPrefix(next, last) {
				found[next] = one.About
				if len(name) > len(before)+1 {
					found[next] = ""
				}
			}
		}
	}
	for _, word := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintln(stdout, strings.TrimSuffix(word+"\t"+found[word], "\t"))
	}
	_, err := fmt.Fprintf(stdout, ":%d\n", directive)
	return err
}

// completeFlags finds those of the command that words begin with.
func completeFlags(ctx context.Context, commands []Command, words []string, last string, found map[string]string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, one := range commands {
		if strings.HasPrefix(strings.Join(words, " ")+" ", one.Name+" ") {
			if _, flags := flagsOf(ctx, one); flags != nil {
				all = flags
			}
		}
	}
	if len(words) == 0 {
		all.Bool("version", false, "print the version and exit")
	}
	all.Bool("help", false, "tell how to call it")
	all.VisitAll(func(f *pflag.Flag) {
		if name := "--" + f.Name; !f.Hidden && strings.HasPrefix(name, last) {
			found[name] = strings.Join(strings.Fields(f.Usage), " ")
		}
	})
}
