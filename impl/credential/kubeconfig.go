package credential

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/disk"
)

// maxKubeconfig bounds a kubeconfig, and each file that it names.
const maxKubeconfig = 1 << 20

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

// Read gives the content of a file.
type Read func(path string) ([]byte, error)

func readFile(path string) ([]byte, error) { return disk.ReadFile(path, maxKubeconfig) }

// Kubeconfig is the current context of a kubelet's kubeconfig: where its cloud is, how that is reached, and by what the
// kubelet is its node there. It is immutable; the files that it names are read when they are asked for.
type Kubeconfig struct {
	Server     *url.URL // https://host:port
	ServerName string   // that the cloud's certificate has; "": its host
	Proxy      *url.URL // through which the cloud is reached; nil: the environment says that

	path    string
	read    Read
	cluster cluster
	user    User
}

// Load reads a kubeconfig.
func Load(path string) (*Kubeconfig, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text, readFile)
}

// Parse is Load for the one that has read it. Nothing is run, and paths become absolute.
func Parse(path string, text []byte, read Read) (*Kubeconfig, error) {
	var f file
	if err := yaml.Unmarshal(text, &f); err != nil {
		return nil, errors.New("it is no kubeconfig") // the parser's words may hold a token
	}
	k := &Kubeconfig{path: path, read: read}
	there := [3]bool{}
	for _, c := range f.Contexts {
		if c.Name != f.Current {
			continue
		}
		there = [3]bool{true}
		for _, o := range f.Clusters {
			if o.Name == c.Context.Cluster {
				k.cluster, there[1] = o.Cluster, true
			}
		}
		for _, o := range f.Users {
			if o.Name == c.Context.User {
				k.user, there[2] = o.User, true
			}
		}
	}
	for n, what := range []string{"is not in it", "has no cluster", "has no user"} {
		if !there[n] {
			return nil, fmt.Errorf("current-context %.100q %s", f.Current, what)
		}
	}
	return k, k.check()
}

// check reads the cluster's part.
func (k *Kubeconfig) check() (err error) {
	c := &k.cluster
	c.CA = Beside(k.path, c.CA)
	k.user.Certificate, k.user.Key = Beside(k.path, k.user.Certificate), Beside(k.path, k.user.Key)
	switch {
	case c.Insecure:
		return errors.New("insecure-skip-tls-verify is not supported: a hub verifies the cloud")
	case strings.HasPrefix(c.Server, "http://"):
		return fmt.Errorf("server: %.200q: want https://, of kube-apiserver; if it is a hub of this machine, as OpenYurt's "+
			"YurtHub is, lead the kubelet to the cloud first", c.Server)
	}
	if k.Server, err = url.Parse(strings.TrimSuffix(c.Server, "/")); err != nil || k.Server.Scheme != "https" ||
		k.Server.Host == "" || k.Server.Path != "" || k.Server.RawQuery != "" || k.Server.User != nil {
		return fmt.Errorf("server: %.200q: want https://host:port", c.Server)
	}
	k.ServerName = c.ServerName
	if c.Proxy != "" {
		if k.Proxy, err = url.Parse(c.Proxy); err != nil || k.Proxy.Host == "" ||
			k.Proxy.Scheme != "http" && k.Proxy.Scheme != "https" {
			// it may hold a password.
			return errors.New(
				"proxy-url: want http://host:port or https://host:port, with name and password before the host if it wants them")
		}
	}
	return nil
}

// Authorities are who signs the cloud's certificate, in PEM.
func (k *Kubeconfig) Authorities() ([]byte, error) {
	text, err := k.either(k.cluster.CAData, k.cluster.CA)
	if err != nil {
		return nil, fmt.Errorf("certificate-authority: %w", err)
	}
	return text, nil
}

// HasCertificate reports whether its user is one by a client certificate.
func (k *Kubeconfig) HasCertificate() bool {
	return k.user.Certificate != "" || len(k.user.CertificateData) > 0
}

// Embedded reports whether that stands in the kubeconfig itself, where nobody renews it.
func (k *Kubeconfig) Embedded() bool { return len(k.user.CertificateData) > 0 }

// Files are those of the client certificate and of its key; "": they stand in the kubeconfig.
func (k *Kubeconfig) Files() (cert, key string) {
	if k.Embedded() {
		return "", ""
	}
	return k.user.Certificate, k.user.Key
}

// Pair is the client certificate with its key, in PEM.
func (k *Kubeconfig) Pair() (cert, key []byte, err error) {
	if cert, err = k.either(k.user.CertificateData, k.user.Certificate); err != nil {
		return nil, nil, fmt.Errorf("client-certificate: %w", err)
	}
	if key, err = k.either(k.user.KeyData, k.user.Key); err != nil {
		return nil, nil, fmt.Errorf("client-key: %w", err)
	}
	return cert, key, nil
}

// User is what its user shows in the place of a certificate.
func (k *Kubeconfig) User() (*User, error) {
	u := k.user
	if k.HasCertificate() {
		return nil, errors.New("its user has a client certificate: want a token, a tokenFile or an exec plugin")
	}
	u.cluster = k.cluster
	if u.Exec != nil { // check changes it
		e := *u.Exec
		u.Exec = &e
	}
	if err := u.check(k.path); err != nil {
		return nil, err
	}
	if u.Exec != nil && u.Exec.ProvideCluster {
		var err error
		if u.cluster.CAData, err = k.Authorities(); err != nil && (k.cluster.CA != "" || len(k.cluster.CAData) > 0) {
			return nil, err
		}
	}
	return &u, nil
}

// either is what stands in a kubeconfig, or in the file that it names.
func (k *Kubeconfig) either(data []byte, path string) ([]byte, error) {
	if len(data) > 0 {
		return data, nil
	}
	if path == "" {
		return nil, errors.New("there is none")
	}
	return k.read(path)
}

// File is a kubeconfig that may be replaced at any time. One goroutine at a time may use it.
type File struct {
	Path string
	text []byte
	now  *Kubeconfig
}

// Read reads it, if it has changed.
func (f *File) Read() (*Kubeconfig, error) {
	text, err := readFile(f.Path)
	if err != nil {
		return nil, err
	}
	if f.now != nil && bytes.Equal(text, f.text) {
		return f.now, nil
	}
	k, err := Parse(f.Path, text, readFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	f.text, f.now = text, k
	return k, nil
}
