package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/disk"
)

// most bounds what is read of a unit: variables, and words of a command.
const most = 10_000

// header is before each file in what `systemctl cat` prints.
var header = regexp.MustCompile(`^# (/\S+)$`)

// flag is by what a kubelet is told its kubeconfig.
const flag = "--kubeconfig"

// named is that flag in a text.
var named = regexp.MustCompile(`(^|[\s"'=])--kubeconfig[= ](\S+?)(["']?)(\s|$)`)

// UnitFiles gives the contents of the files that a pattern of EnvironmentFile= names, in the order of their names. That
// there are none is fs.ErrNotExist.
type UnitFiles func(pattern string) ([][]byte, error)

// mostMatches bounds the files that a pattern may name.
const mostMatches = 100

// UnitFilesBelow is UnitFiles of the machine whose root is a folder. A file may have so many bytes.
func UnitFilesBelow(root string, bound int) UnitFiles {
	return func(pattern string) (texts [][]byte, err error) {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s: %w", pattern, fs.ErrNotExist)
		}
		for _, path := range paths[:min(len(paths), mostMatches)] {
			text, err := disk.ReadFile(path, bound)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
		return texts, nil
	}
}

// Unit is what matters of the kubelet's unit.
type Unit struct {
	variable   string // of Environment= that names the kubeconfig; "": the command is changed
	text       string // its value, or the command
	add        bool   // the command gets one more such flag: of several the last one counts
	Kubeconfig string
	// Environment is what the kubelet is started with.
	Environment map[string]string
}

// service is a [Service] section as far as it was read.
type service struct {
	command string            // the last ExecStart=
	direct  map[string]string // of Environment=
	files   []string          // of EnvironmentFile=
	unset   []string
}

// ParseUnit reads what `systemctl cat` prints. The last one that names a kubeconfig counts, but for the file ours.
func ParseUnit(text, ours string, read UnitFiles) (u Unit, err error) {
	s := &service{direct: map[string]string{}}
	s.section(text, func(path string) bool { return filepath.Base(path) == ours })
	if u, err = s.unit(read); err != nil {
		return u, err
	}
	const probe = "/another/kubeconfig"
	s.section(string(u.DropIn(probe, "")), func(string) bool { return false })
	if led, err := s.unit(read); err != nil || led.Kubeconfig != probe {
		return u,
			fmt.Errorf("ExecStart=%.200q: its --kubeconfig stands where it cannot be changed: want it in ExecStart, "+
				"Environment or EnvironmentFile, as a word of its own", s.command)
	}
	return u, nil
}

// UnitCommand reads by which words a service is started, as `systemctl cat` prints its unit.
func UnitCommand(text string, read UnitFiles) ([]string, error) {
	s := &service{direct: map[string]string{}}
	s.section(text, func(string) bool { return false })
	env, err := s.environment(read)
	if err != nil {
		return nil, err
	}
	args, err := words(specified(s.command))
	if err != nil {
		return nil, fmt.Errorf("ExecStart=%.200s: %w", s.command, err)
	}
	return expanded(args, env), nil
}

// section reads the lines of [Service], but of files that are passed over.
func (s *service) section(text string, pass func(path string) bool) {
	skip, section := false, ""
	for line := range logical(text) {
		if m := header.FindStringSubmatch(line); m != nil {
			skip, section = pass(m[1]), ""
		}
		key, value, ok := strings.Cut(line, "=")
		switch {
		case skip || line == "" || isComment(line):
		case line[0] == '[':
			section = line
		case ok && section == "[Service]":
			s.take(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
}

// logical gives the lines of units: a backslash at the end of one joins the next to it, and comments between them are
// left out.
func logical(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		joined, goesOn := "", false
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if start := strings.TrimSpace(line); goesOn && isComment(start) {
				continue
			}
			joined += line
			if goesOn = endsInBackslash(line) && !isComment(strings.TrimSpace(joined)); goesOn {
				joined = joined[:len(joined)-1] + " "
				continue
			}
			if !yield(strings.TrimSpace(joined)) {
				return
			}
			joined = ""
		}
		if goesOn {
			yield(strings.TrimSpace(joined))
		}
	}
}

func isComment(line string) bool { return line != "" && (line[0] == '#' || line[0] == ';') }

func endsInBackslash(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// take reads one assignment.
func (s *service) take(key, value string) {
	switch key {
	case "ExecStart":
		s.command = value
	case "Environment":
		if value == "" {
			clear(s.direct)
			return
		}
		all, err := words(specified(value))
		if err != nil { // systemd passes over it, too
			return
		}
		for _, w := range all {
			if name, v, ok := strings.Cut(w, "="); ok && isName(name) && len(s.direct) < most {
				s.direct[name] = v
			}
		}
	case "EnvironmentFile":
		if value == "" {
			s.files = nil
		} else if len(s.files) < most {
			s.files = append(s.files, specified(value))
		}
	case "UnsetEnvironment":
		if value == "" {
			s.unset = nil
		} else if all, err := words(specified(value)); err == nil && len(s.unset) < most {
			s.unset = append(s.unset, all...)
		}
	}
}

// environment is what the process is started with.
func (s *service) environment(read UnitFiles) (map[string]string, error) {
	env := map[string]string{}
	maps.Copy(env, s.direct)
	for _, f := range s.files {
		path, optional := strings.CutPrefix(f, "-")
		texts, err := read(path)
		if err != nil && (!optional || !errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("EnvironmentFile=%s: %w", f, err)
		}
		for _, text := range texts {
			fileVariables(string(text), func(name, v string) {
				if len(env) < most {
					env[name] = v
				}
			})
		}
	}
	for _, w := range s.unset {
		name, v, whole := strings.Cut(w, "=")
		if now, ok := env[name]; ok && (!whole || now == v) {
			delete(env, name)
		}
	}
	return env, nil
}

func (s *service) unit(read UnitFiles) (u Unit, err error) {
	if u.Environment, err = s.environment(read); err != nil {
		return u, err
	}
	args, err := words(specified(s.command))
	if err != nil {
		return u, fmt.Errorf("ExecStart=%.200s: %w", s.command, err)
	}
	args = expanded(args, u.Environment)
	times := 0
	for i, a := range args {
		v, ok := strings.CutPrefix(a, flag+"=")
		if !ok && a == flag && i+1 < len(args) {
			v, ok = args[i+1], true
		}
		if ok {
			u.Kubeconfig = v
			times++
		}
	}
	command := strings.Join(args, " ")
	shell := times == 0 // it may be told a whole command
	if m := named.FindStringSubmatch(command); shell && m != nil {
		u.Kubeconfig = m[2]
	}
	u.text = s.command
	// where a variable has it that the unit sets, another value of that is the smallest change.
	if times < 2 && !named.MatchString(s.command) {
		for _, name := range slices.Sorted(maps.Keys(s.direct)) {
			v := s.direct[name]
			m := named.FindStringSubmatch(v)
			if m == nil || u.Environment[name] != v || !refers(s.command, name) {
				continue
			}
			if u.variable, u.text = name, v; shell && u.Kubeconfig == "" {
				u.Kubeconfig = m[2]
			}
		}
	}
	u.add = times > 1 || times == 1 && u.variable == "" && !named.MatchString(s.command)
	switch {
	case u.Kubeconfig == "":
		return u,
			errors.New("neither its ExecStart nor an Environment or EnvironmentFile of it has --kubeconfig: a kubelet with " +
				"another configuration is not supported")
	case !filepath.IsAbs(u.Kubeconfig) || strings.ContainsAny(u.Kubeconfig, "%$"):
		return u, fmt.Errorf("its --kubeconfig is %.200q: name the file by --kubelet-kubeconfig", u.Kubeconfig)
	}
	return u, nil
}

// refers reports whether a command has a variable, by itself or for a shell.
func refers(command, name string) bool {
	return regexp.MustCompile(`\$(` + name + `\b|\{` + name + `\})`).MatchString(command)
}

// expanded are the words of a command with variables: $NAME alone is as many words as its value has, ${NAME} is its
// value, and $$ is $.
func expanded(args []string, env map[string]string) (all []string) {
	if len(args) > 0 {
		program := strings.TrimLeft(args[0], "-@:+!|")
		if strings.Contains(args[0][:len(args[0])-len(program)], ":") {
			return args
		}
	}
	for _, a := range args {
		if name, ok := strings.CutPrefix(a, "$"); ok && isName(name) {
			if inner, err := words(env[name]); err == nil && len(all) < most {
				all = append(all, inner...)
			}
			continue
		}
		all = append(all, variable.ReplaceAllStringFunc(a, func(m string) string {
			if m == "$$" {
				return "$"
			}
			return env[m[2:len(m)-1]]
		}))
	}
	return all
}

var variable = regexp.MustCompile(`\$\$|\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// specifiers are those that are the same on all machines for kubelet.service of the system. Others stay as they are.
var specifiers = strings.NewReplacer("%%", "%", "%n", "kubelet.service", "%N", "kubelet", "%p", "kubelet",
	"%P", "kubelet", "%i", "", "%I", "", "%j", "kubelet", "%J", "kubelet",
	"%t", "/run", "%S", "/var/lib", "%C", "/var/cache", "%L", "/var/log", "%E", "/etc", "%T", "/tmp", "%V", "/var/tmp",
	"%h", "/root", "%u", "root", "%U", "0", "%g", "root", "%G", "0", "%s", "/bin/sh")

func specified(value string) string { return specifiers.Replace(value) }

// DropIn leads the kubelet to another kubeconfig, and starts it after the service of its hub.
func (u Unit) DropIn(kubeconfig, hub string) []byte {
	text := named.ReplaceAllString(u.text, "${1}"+flag+"="+strings.ReplaceAll(kubeconfig, "$", "$$")+"${3}${4}")
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by weir node join, taken away by weir node leave: this kubelet calls the hub of its "+
		"node.\n[Unit]\nWants=%[1]s\nAfter=%[1]s\n\n[Service]\n", hub)
	switch {
	case u.variable != "":
		fmt.Fprintf(&b, "Environment=\"%s=%s\"\n", u.variable, quoted.Replace(text))
	case u.add: // what a file sets is its owner's, who goes on to write it
		fmt.Fprintf(&b, "ExecStart=\nExecStart=%s %s=%s\n", u.text, flag, kubeconfig)
	default:
		fmt.Fprintf(&b, "ExecStart=\nExecStart=%s\n", text)
	}
	return b.Bytes()
}

// quoted is a value between double quotes.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, "\n", `\n`)

// Quoted is a value as a file of EnvironmentFile= has it.
func Quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(value) + `"`
}
