package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

type values struct {
	port    int
	bytes   int64
	name    string
	servers []string
	wait    time.Duration
}

func parse(t *testing.T, config string, args ...string) (values, string, error) {
	t.Helper()
	var v values
	f := NewFlags("weir-test", "is a test")
	f.IntVar(&v.port, "port", 7, "a port")
	f.Int64Var(&v.bytes, "bytes", 0, "some bytes")
	f.StringVar(&v.name, "name", "", "a name")
	f.StringArrayVar(&v.servers, "server", nil, "servers")
	f.DurationVar(&v.wait, "wait", 0, "a wait")
	f.Former("remove it", "pause", "patient")
	if config != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	var out bytes.Buffer
	err := f.Parse(args, &out)
	return v, out.String(), err
}

func TestConfigFileAndCommandLine(t *testing.T) {
	v, _, err := parse(t, "port: 8\nbytes: 16777216\nname: from-file\nserver: [a, b]\nwait: 10s\n", "--name", "from-line")
	if err != nil {
		t.Fatal(err)
	}
	want := values{port: 8, bytes: 16777216, name: "from-line", servers: []string{"a", "b"}, wait: 10 * time.Second}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %+v, want %+v", v, want)
	}
}

// TestFilesBesideConfig: the last file by name of the folder beside a --config file wins over the others, all of them
// over the file, and the command line over all.
func TestFilesBesideConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.Mkdir(path+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"":             "port: 1\nbytes: 1\nname: main\nserver: [a, b]\nwait: 1s\n",
		".d/10-a.yaml": "port: 2\nbytes: 2\nname: ten\nserver: [c]\n", ".d/20-b.yaml": "port: 3\nbytes: 3\n",
		".d/30-c.yaml.tmp": "port: 9\n", ".d/README": "no YAML: [",
	} {
		if err := os.WriteFile(path+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v, _, err := parse(t, "", "--config", path, "--bytes=4")
	if want := (values{port: 3, bytes: 4, name: "ten", servers: []string{"c"}, wait: time.Second}); err != nil ||
		!reflect.DeepEqual(v, want) {
		t.Errorf("got %+v, %v, want %+v", v, err, want)
	}
	if err := os.WriteFile(path+".d/30-c.yaml", []byte("prot: 8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = parse(t, "", "--config", path); ExitCode(err) != 2 ||
		!strings.Contains(err.Error(), path+".d/30-c.yaml: prot") {
		t.Errorf("got %v, want an error that names the file and the flag", err)
	}
}

func TestWrongUsageIsExitCode2AndNamesTheField(t *testing.T) {
	for _, c := range []struct {
		config, want string
		args         []string
	}{
		{args: []string{"--port", "many"}, want: "many"},
		{args: []string{"--prot", "8"}, want: "--prot"},
		{args: []string{"surplus"}, want: "surplus"},
		{args: []string{"--config", "/there/is/none"}, want: "/there/is/none"},
		{config: "prot: 8\n", want: "prot"},
		{config: "port: many\n", want: "many"},
		{config: "port: 8\nport: 9\n", want: "port"},
		{config: "- 8\n", want: "mapping"},
		{config: "config: x\n", want: "config"},
	} {
		_, _, err := parse(t, c.config, c.args...)
		if err == nil || ExitCode(err) != 2 || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v %q: exit code %d, %v", c.args, c.config, ExitCode(err), err)
		}
	}
}

// TestListen: a port may have the address before it that it is on. Without one that of the default stays.
func TestListen(t *testing.T) {
	for _, c := range []struct{ given, host, port, wrong string }{
		{given: "8", host: "127.0.0.1", port: "8"}, {given: "0", host: "127.0.0.1", port: "0"},
		{given: "0.0.0.0:8", host: "0.0.0.0", port: "8"}, {given: "[::1]:8", host: "::1", port: "8"},
		{given: "localhost:8", wrong: "an IP address of this machine"}, {given: "65536", wrong: "0 to 65535"},
		{given: "127.0.0.1:", wrong: "0 to 65535"}, {given: "many", wrong: "0 to 65535"},
	} {
		var host string
		var port int
		f := NewFlags("weir-test", "")
		f.Listen(&host, &port, "port", "127.0.0.1", 7, "a port")
		err := f.Parse([]string{"--port", c.given}, nil)
		switch {
		case c.wrong != "":
			if ExitCode(err) != 2 || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), "--port") {
				t.Errorf("%s: exit code %d, %v", c.given, ExitCode(err), err)
			}
		case err != nil || host != c.host || strconv.Itoa(port) != c.port:
			t.Errorf("%s: %q, %d, %v", c.given, host, port, err)
		}
	}
}

// TestFormerFlag: who gives a flag that is gone is told so in one line, and what to do, wherever it is given. The help
// does not have it.
func TestFormerFlag(t *testing.T) {
	for _, c := range []struct {
		config string
		args   []string
		want   []string
	}{
		{args: []string{"--pause=5s"}, want: []string{"--pause is no flag any more: remove it"}},
		{args: []string{"--pause", "5s"}, want: []string{"--pause is no flag any more: remove it"}},
		{args: []string{"--patient"}, want: []string{"--patient is no flag any more: remove it"}},
		{config: "pause: 5s\n", want: []string{"config.yaml: pause", `"5s"`, "no flag any more: remove it"}},
	} {
		_, _, err := parse(t, c.config, c.args...)
		if err == nil || ExitCode(err) != 2 || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%v %q: exit code %d, %v", c.args, c.config, ExitCode(err), err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not say %q", err, want)
			}
		}
	}
	if _, help, _ := parse(t, "", "--help"); strings.Contains(help, "pause") || !strings.Contains(help, "--wait") {
		t.Errorf("the help has a flag that is gone: %s", help)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for arg, want := range map[string]string{"--help": "--port", "--version": "weir-test "} {
		_, out, err := parse(t, "", arg)
		if !errors.Is(err, ErrHelp) || ExitCode(err) != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q", arg, err, out)
		}
	}
	if ExitCode(errors.New("x")) != 1 {
		t.Error("a failure is exit code 1")
	}
}

func TestLogger(t *testing.T) {
	f := NewFlags("weir-test", "")
	if err := f.Parse([]string{"--log-format", "json", "--log-level", "warn"}, nil); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, err := f.Logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("no")
	log.Warn("yes")
	if s := out.String(); !strings.HasPrefix(s, "{") || strings.Contains(s, "no") {
		t.Error(s)
	}
	f = NewFlags("weir-test", "")
	if err := f.Parse([]string{"--log-level", "loud"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Logger(&out); ExitCode(err) != 2 {
		t.Error(err)
	}
}
