package uplink

import (
	"encoding/json"
	"errors"
	"net/url"
	"sync/atomic"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/disk"
)

// KubeconfigFlag names the kubelet's kubeconfig.
const KubeconfigFlag = "--cloud-client-kubeconfig"

// Place is where the cloud is and how it is reached.
type Place struct {
	Server     string `json:"server"`
	ServerName string `json:"serverName,omitempty"` // that its certificate has; "": its host
	Proxy      string `json:"proxy,omitempty"`      // "": the environment says it
	Tokens     bool   `json:"tokens,omitempty"`     // the node is one by what it shows in the place of a certificate
}

// Kubeconfig is where the cloud is as the kubelet's kubeconfig says, which may be replaced at any time.
type Kubeconfig struct {
	file    credential.File
	copy    string // where the last good place is kept, for a start without it
	current atomic.Pointer[credential.Kubeconfig]
	place   atomic.Pointer[Place]
}

// Kubeconfig reads the kubelet's kubeconfig, now and again. What it says is kept in a file, and counts while it cannot
// be read.
func (r *Reloader) Kubeconfig(path, in string) (*Kubeconfig, error) {
	k := &Kubeconfig{file: credential.File{Path: path}, copy: in}
	w := &watched{file: k, flag: KubeconfigFlag}
	err := r.first(w)
	if text, unread := disk.ReadFile(in, maxPlace); w.err != nil && unread == nil {
		p := &Place{}
		if json.Unmarshal(text, p) == nil {
			k.place.Store(p)
		}
	}
	return k, err
}

// maxPlace bounds the file of a Place, in bytes.
const maxPlace = 64 << 10

// Reload implements what Reloader wants.
func (k *Kubeconfig) Reload() (changed bool, err error) {
	now, err := k.file.Read()
	if err != nil {
		return false, cli.Usage(KubeconfigFlag, k.file.Path, err.Error())
	}
	p := &Place{Server: now.Server.String(), ServerName: now.ServerName, Tokens: !now.HasCertificate()}
	if now.Proxy != nil {
		p.Proxy = now.Proxy.String()
	}
	if k.current.Swap(now) == now {
		return false, nil
	}
	former := k.place.Swap(p)
	if former != nil && *former == *p {
		return true, nil
	}
	if text, err := json.Marshal(p); err == nil {
		_ = disk.WriteFile(k.copy, text) // a disk that is full costs the copy
	}
	return true, nil
}

// Tokens reports whether the node is one by what it shows in the place of a certificate.
func (k *Kubeconfig) Tokens() bool {
	p := k.place.Load()
	return p != nil && p.Tokens
}

// User is what the node shows in the place of a certificate.
func (k *Kubeconfig) User() (*credential.User, error) {
	now := k.current.Load()
	if now == nil {
		return nil, errors.New(KubeconfigFlag + " could not be read yet")
	}
	return now.User()
}

// PairOf is the node's certificate: that of a file, where its kubelet renews it, or of its kubeconfig where that is not
// there. file may be "".
func (r *Reloader) PairOf(kubeconfig, file string) (*Pair, error) {
	p := &Pair{flag: "--cloud-client-cert-file", file: file, in: &credential.File{Path: kubeconfig}}
	return p, r.first(&watched{file: p, flag: KubeconfigFlag})
}

// now is the place; nil: nothing is known of it.
func (k *Kubeconfig) now() (server *url.URL, name string, proxy *url.URL) {
	if k == nil {
		return nil, "", nil
	}
	p := k.place.Load()
	if p == nil {
		return nil, "", nil
	}
	if p.Proxy != "" {
		proxy, _ = url.Parse(p.Proxy)
	}
	server, _ = url.Parse(p.Server)
	return server, p.ServerName, proxy
}
