// Package unit reads how systemd starts a kubelet, and writes the drop-in that leads it to another kubeconfig. It starts no goroutine, and reads and writes no file.
package unit

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// header is before each file in what `systemctl cat` prints.
var header = regexp.MustCompile(`^# (/\S+)$`)

// named is the flag by which a kubelet is told its kubeconfig.
var named = regexp.MustCompile(`(^|[\s"'=])--kubeconfig[= ](\S+?)(["']?)(\s|$)`)

// Unit is what matters of the kubelet's unit.
type Unit struct {
	variable   string // of the environment that names the kubeconfig; "": the command does
	text       string // its value, or the command
	Kubeconfig string
}

// Parse reads what `systemctl cat` prints. The last one that names a kubeconfig counts, but for the file ours.
func Parse(text, ours string) (u Unit, err error) {
	skip, command := false, ""
	variables := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if m := header.FindStringSubmatch(line); m != nil {
			skip = filepath.Base(m[1]) == ours
		}
		key, value, ok := strings.Cut(line, "=")
		switch key, value = strings.TrimSpace(key), strings.TrimSpace(value); {
		case skip || !ok:
		case key == "ExecStart":
			command = value
		case key == "Environment" && value == "":
			clear(variables)
		case key == "Environment":
			if name, v, ok := strings.Cut(strings.Trim(value, `"'`), "="); ok {
				variables[name] = v
			}
		}
	}
	u.text = command
	for name, v := range variables {
		if named.MatchString(v) && (strings.Contains(command, "$"+name) || strings.Contains(command, "${"+name+"}")) {
			u.variable, u.text = name, v
		}
	}
	m := named.FindStringSubmatch(u.text)
	if m == nil {
		return u, errors.New("neither its ExecStart nor an Environment of it has --kubeconfig: a kubelet with another configuration is not supported")
	}
	u.Kubeconfig = m[2]
	return u, nil
}

// DropIn leads the kubelet to another kubeconfig, and starts it after the service of its hub.
func (u Unit) DropIn(kubeconfig, hub string) []byte {
	text := named.ReplaceAllString(u.text, "${1}--kubeconfig="+strings.ReplaceAll(kubeconfig, "$", "$$")+"${3}${4}")
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by weir node join, taken away by weir node leave: this kubelet calls the hub of its node.\n[Unit]\nWants=%[1]s\nAfter=%[1]s\n\n[Service]\n", hub)
	if u.variable != "" {
		fmt.Fprintf(&b, "Environment=\"%s=%s\"\n", u.variable, text)
	} else {
		fmt.Fprintf(&b, "ExecStart=\nExecStart=%s\n", text)
	}
	return b.Bytes()
}
