package credential

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// versions of the interface of programs that print a credential.
var versions = []string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}

// cluster is where the API of a kubeconfig is.
type cluster struct {
	Server     string `json:"server"`
	ServerName string `json:"tls-server-name"`
	CAData     []byte `json:"certificate-authority-data"`
	CA         string `json:"certificate-authority"`
	Insecure   bool   `json:"insecure-skip-tls-verify"`
	Proxy      string `json:"proxy-url"`
}

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

	// Its client certificate, which goes before all of these.
	Certificate     string `json:"client-certificate"`
	CertificateData []byte `json:"client-certificate-data"`
	Key             string `json:"client-key"`
	KeyData         []byte `json:"client-key-data"`

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
		return fmt.Errorf(
			"exec.interactiveMode Always: %s wants a terminal, and a service has none; want Never or IfAvailable", e.Command)
	}
	if strings.ContainsRune(e.Command, filepath.Separator) {
		e.Command = Beside(kubeconfig, e.Command)
	}
	return nil
}
