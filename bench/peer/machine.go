package peer

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"text/template"
)

// Machine is a node that a peer runs on. Its fields are the placeholders of a profile, as {{.Node}}; {{read .Cert}} is
// what the file has, and {{range .Nodes}} goes through all nodes of the pool.
type Machine struct {
	Node    string // its name, which is that of its Node object
	Pool    string
	Address string // of its own on the loopback interface, which nobody else uses
	Port    int    // that is free there
	Cloud   string // URL of the cloud's API server, over the uplink of the pool
	CA      string // file of the cloud's authority, which signed the following, too
	Cert    string // file of the client certificate of Profile.Identity
	Key     string
	// ServingCert and ServingKey are files of a certificate for the address, the name of the node, localhost and the
	// Service kubernetes.
	ServingCert, ServingKey string
	Kubeconfig              string // file with Cloud, CA, Cert and Key
	Data                    string // folder for what the peer keeps
	Nodes                   []Neighbour
}

// Neighbour is a node of the pool.
type Neighbour struct{ Node, Address string }

// example is what profiles are tried with.
var example = Machine{
	Node: "peer-1", Pool: "peer", Address: "127.0.0.1", Port: 10268, Cloud: "https://127.0.0.1:6443", CA: os.DevNull,
	Cert: os.DevNull, Key: os.DevNull,
	ServingCert: os.DevNull, ServingKey: os.DevNull, Kubeconfig: os.DevNull, Data: "/data",
	Nodes: []Neighbour{{"peer-1", "127.0.0.1"}},
}

// placeholders are all of them.
func placeholders() (names []string) {
	for f := range reflect.TypeFor[Machine]().Fields() {
		names = append(names, "{{."+f.Name+"}}")
	}
	return names
}

// fill puts the machine's values into a text.
func (m Machine) fill(text string) (string, error) {
	t, err := template.New("").Funcs(template.FuncMap{"read": read}).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var b bounded
	if err := t.Execute(&b, m); err != nil {
		return "", err
	}
	return b.String(), nil
}

// bounded takes no more than a manifest may have: a short text can ask for a very long one.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxManifest {
		return 0, fmt.Errorf("it comes to more than %d bytes", maxManifest)
	}
	return b.Builder.Write(p)
}

func read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("%s has more than %d bytes", path, maxManifest)
	}
	return string(data), err
}

// lookPath finds a program: by its name in PATH, or by a path from a folder.
func lookPath(name, folder string) (string, error) {
	if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		name = filepath.Join(folder, name)
		if !filepath.IsAbs(name) {
			name = "." + string(filepath.Separator) + name
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
