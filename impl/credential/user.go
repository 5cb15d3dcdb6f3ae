package credential

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/disk"
)

// maxKubeconfig bounds the file of one.
const maxKubeconfig = 1 << 20

// versions of the interface of programs that print a credential.
var versions = []string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}

// User is the current user of a kubeconfig, as far as it proves who it is.
type User struct {
	Token     string `json:"token"`
	TokenFile string `json:"tokenFile"`
	Exec      *Exec  `json:"exec"`

	// What is refused.
	Username     string `json:"username"`
	Password     string `json:"password"`
	AuthProvider any    `json:"auth-provider"`
	As           string `json:"as"`

	cluster cluster // of which a program may be told
}

// Exec is a program that prints a credential.
type Exec struct {
	Command         string   `json:"command"`
	Args            []string `json:"args"`
	Env             []Env    `json:"env"`
	APIVersion      string   `json:"apiVersion"`
	InstallHint     string   `json:"installHint"`
	ProvideCluster  bool     `json:"provideClusterInfo"`
	InteractiveMode string   `json:"interactiveMode"`
}

// Env is a variable of its environment.
type Env struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cluster struct {
	Server string `json:"server"`
	CAData []byte `json:"certificate-authority-data"`
	CA     string `json:"certificate-authority"`
}

// file is a kubeconfig. It is read here by hand: client-go's reader would cost a hub megabytes.
type file struct {
	Current  string `json:"current-context"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User User   `json:"user"`
	} `json:"users"`
}

// Load reads the current user of a kubeconfig.
func Load(path string) (*User, error) {
	text, err := disk.ReadFile(path, maxKubeconfig)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse is Load for who has read it. Nothing is run, and paths become absolute.
func Parse(path string, text []byte) (*User, error) {
	var f file
	if err := yaml.Unmarshal(text, &f); err != nil {
		return nil, errors.New("it is no kubeconfig") // the parser's words may hold a token
	}
	var u *User
	for _, c := range f.Contexts {
		if c.Name != f.Current {
			continue
		}
		for i := range f.Users {
			if f.Users[i].Name == c.Context.User {
				u = &f.Users[i].User
			}
		}
		for _, k := range f.Clusters {
			if u != nil && k.Name == c.Context.Cluster {
				u.cluster = k.Cluster
			}
		}
	}
	if u == nil {
		return nil, fmt.Errorf("current-context %q has no user", f.Current)
	}
	if err := u.check(path); err != nil {
		return nil, err
	}
	if u.Exec != nil && u.Exec.ProvideCluster && len(u.cluster.CAData) == 0 && u.cluster.CA != "" {
		var err error
		if u.cluster.CAData, err = disk.ReadFile(Beside(path, u.cluster.CA), maxKubeconfig); err != nil {
			return nil, fmt.Errorf("certificate-authority: %w", err)
		}
	}
	return u, nil
}

// Beside is a path as a kubeconfig means it.
func Beside(kubeconfig, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(kubeconfig), path)
}

// check tells what is wrong with a user.
func (u *User) check(kubeconfig string) error {
	switch {
	case u.Username != "" || u.Password != "" || u.AuthProvider != nil:
		return errors.New("its user has a password or an auth-provider: want client-certificate, token, tokenFile or exec")
	case u.As != "":
		return errors.New("its user impersonates another: want one that is the node itself")
	case u.Exec != nil:
		return u.Exec.check(kubeconfig)
	case u.TokenFile != "":
		u.TokenFile = Beside(kubeconfig, u.TokenFile)
	case u.Token == "":
		return errors.New("its user has no token, tokenFile or exec")
	}
	return nil
}

func (e *Exec) check(kubeconfig string) error {
	switch {
	case e.Command == "":
		return errors.New("exec.command: there is none")
	case !slices.Contains(versions, e.APIVersion):
		return fmt.Errorf("exec.apiVersion %q: want %s", e.APIVersion, strings.Join(versions, " or "))
	case e.InteractiveMode == "Always":
		return fmt.Errorf("exec.interactiveMode Always: %s wants a terminal, and a service has none; want Never or IfAvailable", e.Command)
	}
	if strings.ContainsRune(e.Command, filepath.Separator) {
		e.Command = Beside(kubeconfig, e.Command)
	}
	return nil
}
