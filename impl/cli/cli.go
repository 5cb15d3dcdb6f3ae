// Package cli is what the commands of Weir share: flags that a YAML file may set too, --version,
// structured logs, signals and exit codes. It knows no command.
//
// Exit codes: 0 success, 1 failure, 2 wrong usage (a flag, a configuration file or a scenario file that
// cannot be what the user meant). A usage error names the field, the value and what is allowed.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// UsageError is wrong input by the user: exit code 2.
type UsageError struct {
	Field   string // flag or field as the user wrote it, e.g. "--secure-port"
	Value   string // what was given
	Allowed string // what is allowed, or what to do
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("%s: %q is not allowed: %s", e.Field, e.Value, e.Allowed)
}

// Usage returns a UsageError.
func Usage(field string, value any, allowed string) error {
	return &UsageError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

// ExitError is how a command ended that ran somewhere else. Its exit code is that of the command here.
type ExitError struct{ Code int }

// Error implements error.
func (e *ExitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.Code)
}

// ExitCode maps an error of a command to its exit code.
func ExitCode(err error) int {
	var usage *UsageError
	var exit *ExitError
	switch {
	case err == nil, errors.Is(err, ErrHelp):
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &usage):
		return 2
	default:
		return 1
	}
}

// ErrHelp is returned by Flags.Parse after it printed --help or --version.
var ErrHelp = errors.New("help printed")

// Main runs a command until it ends or SIGINT or SIGTERM cancels its context, prints its error on
// standard error and exits with ExitCode. A second signal ends the process at once.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if code := ExitCode(err); code != 0 {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(code)
	}
}

// Flags is a flag set with the flags that every long-running command of Weir has: --config, --version,
// --log-level and --log-format.
type Flags struct {
	*pflag.FlagSet

	name, about      string
	config           string
	version          bool
	logLevel, logFmt string
}

// NewFlags returns an empty set for a command; about is the first line of its --help.
func NewFlags(name, about string) *Flags {
	f := &Flags{FlagSet: pflag.NewFlagSet(name, pflag.ContinueOnError), name: name, about: about}
	f.SortFlags = false
	f.StringVar(&f.config, "config", "",
		"YAML file whose keys are the names of these flags; files *.yaml in a folder of its name and .d win over it, the "+
			"last by name over others; a flag given on the command line wins over all")
	f.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&f.logFmt, "log-format", "text", "text or json")
	f.BoolVar(&f.version, "version", false, "print the version and exit")
	return f
}

// Listen declares a flag of a port, before which an IP address and a colon may stand.
func (f *Flags) Listen(host *string, port *int, name, hostDefault string, portDefault int, usage string) {
	*host, *port = hostDefault, portDefault
	f.Var(listen{host, port}, name, usage)
}

// listen is a flag of a port, and maybe of the address that it is on.
type listen struct {
	host *string
	port *int
}

func (l listen) String() string {
	if l.port == nil { // pflag asks a zero value
		return ""
	}
	return net.JoinHostPort(*l.host, strconv.Itoa(*l.port))
}

func (l listen) Type() string { return "[IP:]port" }

func (l listen) Set(text string) error {
	port := text
	if host, rest, err := net.SplitHostPort(text); err == nil {
		if net.ParseIP(host) == nil {
			return errors.New("a port, or an IP address of this machine, a colon and a port")
		}
		*l.host, port = host, rest
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return errors.New("a TCP port, 0 to 65535, or an IP address of this machine, a colon and that")
	}
	*l.port = int(n)
	return nil
}

// Former declares flags that are gone, and in one line what to do instead. They stand in no help. One of them, as in a
// file of before an upgrade, is an error that says so.
func (f *Flags) Former(instead string, names ...string) {
	for _, name := range names {
		f.Var(former{name, instead}, name, "")
		_ = f.MarkHidden(name)
		f.Lookup(name).NoOptDefVal = "true" // it may have been one that needs no value
	}
}

// former is a flag that is gone. Its error is that of Set.
type former struct{ name, instead string }

func (f former) String() string   { return "" }
func (f former) Type() string     { return "no flag any more: " + f.instead }
func (f former) Set(string) error { return f }
func (f former) Error() string    { return fmt.Sprintf("--%s is %s", f.name, f.Type()) }

// Parse reads args and the --config file. It prints --help and --version on stdout and returns ErrHelp then.
func (f *Flags) Parse(args []string, stdout io.Writer) error {
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	switch err := f.FlagSet.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "%s: %s\n\nUsage:\n  %s [flags]\n\nFlags:\n%s", f.name, f.about, f.name, f.FlagUsages())
		return ErrHelp
	case err != nil:
		if gone := (former{}); errors.As(err, &gone) {
			err = gone
		} else if bad := BadValue(err); bad != nil {
			bad.Allowed += "; see " + f.name + " --help"
			return bad
		}
		return &parseError{err, f.name}
	}
	if f.version {
		fmt.Fprintln(stdout, f.name, Version())
		return ErrHelp
	}
	if rest := f.Args(); len(rest) > 0 {
		return Usage("argument", rest[0], "no arguments are taken; see --help")
	}
	return f.readConfig()
}

type parseError struct {
	err  error
	name string
}

func (e *parseError) Error() string { return fmt.Sprintf("%v; see %s --help", e.err, e.name) }
func (e *parseError) As(target any) bool {
	u, ok := target.(**UsageError)
	if ok {
		*u = &UsageError{Field: "flags", Value: e.err.Error(), Allowed: "see --help"}
	}
	return ok
}

// BadValue is the error of a flag that cannot have the value that it was given; nil: err of pflag is another one.
func BadValue(err error) *UsageError {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return nil
	}
	flag := bad.GetFlag()
	return &UsageError{Field: "--" + flag.Name, Value: bad.GetValue(), Allowed: allowed(flag.Value, bad)}
}

// allowed is what a flag may be given. err is that of pflag, whose cause says it where the flag is of a type of ours.
func allowed(v pflag.Value, err error) string {
	if _, gone := v.(former); gone {
		return v.Type()
	}
	switch v.Type() {
	case "bool":
		return "true or false"
	case "int", "int8", "int16", "int32", "int64":
		return "a whole number"
	case "uint", "uint8", "uint16", "uint32", "uint64":
		return "a whole number, 0 or more"
	case "float64":
		return "a number"
	case "duration":
		return "a duration, as in 90s or 1h30m"
	}
	if why := errors.Unwrap(err); why != nil {
		return why.Error()
	}
	return err.Error()
}

func (f *Flags) readConfig() error {
	if f.config == "" {
		return nil
	}
	beside, err := os.ReadDir(f.config + configFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Usage("--config", f.config+configFolder, err.Error())
	}
	for _, e := range slices.Backward(beside) { // a flag that has a value keeps it
		if filepath.Ext(e.Name()) != ".yaml" {
			continue
		}
		if err := f.readFile(filepath.Join(f.config+configFolder, e.Name())); err != nil {
			return err
		}
	}
	return f.readFile(f.config)
}

func (f *Flags) readFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return Usage("--config", path, err.Error())
	}
	var fields map[string]any
	if err := yaml.UnmarshalStrict(data, &fields); err != nil {
		return Usage("--config", path,
			"a YAML mapping of flag names to values: "+strings.Join(strings.Fields(err.Error()), " "))
	}
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		flag := f.Lookup(k)
		if flag == nil || k == "config" || k == "version" || k == "help" {
			return Usage(path+": "+k, fields[k], "the names of flags, see --help")
		}
		if flag.Changed {
			continue
		}
		values, ok := fields[k].([]any)
		if !ok {
			values = []any{fields[k]}
		}
		for _, v := range values {
			if err := f.Set(k, text(v)); err != nil {
				return Usage(path+": "+k, v, allowed(flag.Value, err))
			}
		}
	}
	return nil
}

// configFolder is behind the name of a --config file in that of a folder whose files win over it: the owner's, beside
// one that a program writes, as systemd has it.
const configFolder = ".d"

// text is a YAML value as one would write it on the command line.
func text(v any) string {
	if n, ok := v.(float64); ok { // every YAML number
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// Logger returns the logger that --log-level and --log-format ask for.
func (f *Flags) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, Usage("--log-level", f.logLevel, "debug, info, warn or error")
	}
	opts := &slog.HandlerOptions{Level: level}
	switch f.logFmt {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, Usage("--log-format", f.logFmt, "text or json")
}

// version is set by the linker: -X github.com/weir-edge/weir/impl/cli.version=v1.2.3.
var version = ""

// Version tells what this binary is.
func Version() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v = strings.TrimSpace(v + " " + s.Value[:12])
			}
		}
	}
	if v == "" {
		v = "(devel)"
	}
	return fmt.Sprintf("%s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
