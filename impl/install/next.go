package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// followed are those of the hub's flags that say what its machine says: a join of a node that has joined brings them up
// to date, and flags of former versions in it. All others are what a person chose once.
var followed = []string{
	"cloud-server", "cloud-ca-file", "cloud-client-cert-file", "cloud-client-key-file", "cloud-client-kubeconfig",
	"client-ca-file", "etc-dir", "node-authority-file", "store-generated-key-file", "bootstrap-token-file",
	"images-port", "images-root",
}

// next is what a node that has joined is to have.
type next struct {
	program, unit, config file
	// the configuration while the hub is tried: it has what the owner has put beside it, too.
	trial  file
	first  []file   // that the hub needs, and that a former one does not read or reads as well
	last   []file   // that come when it has proved itself, in this order
	gone   []string // that former versions, or a machine of before, had
	chosen bool     // a person has chosen nothing else than before
	drop   file
}

// next is what a join of a node that has joined would leave there.
func (i *Installer) next(p *preflight) (*next, error) {
	n := &next{
		program: p.files[0], unit: p.files[1], gone: []string{cloudCA, clientCA, nodePair},
		drop: file{lasting + dropIn, 0o644, p.kubelet.unit.DropIn(kubeletConf, hubService)},
	}
	proxied := false
	var conf file
	for _, f := range p.files[2:] {
		switch f.path {
		case hubConfig:
			n.config = f
		case kubeletConf:
			conf = f
		case tokenFile: // it counts once
		default:
			proxied = proxied || f.path == proxyEnv
			n.first = append(n.first, f)
		}
	}
	if !proxied {
		n.gone = append(n.gone, proxyEnv)
	}
	var was, want map[string]any
	former, err := i.Host.read(hubConfig)
	if err == nil {
		err = errors.Join(yaml.Unmarshal(former, &was), yaml.Unmarshal(n.config.content, &want))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", hubConfig, err)
	}
	now := maps.Clone(was)
	for _, name := range followed {
		if v, ok := want[name]; ok {
			now[name] = v
		} else {
			delete(now, name)
		}
	}
	if n.config.content, err = hubText(now); err != nil {
		return nil, err
	}
	asked, err := hubText(want)
	if err != nil {
		return nil, err
	}
	n.chosen = bytes.Equal(n.config.content, asked)
	n.last = []file{n.config, conf, n.unit} // what was cut off before the unit is an upgrade still
	n.trial = file{hubNext, 0o600, nil}
	n.trial.content, err = i.beside(now)
	return n, err
}

// current reports whether the program is the one that counts, and the unit that of this version.
func (n *next) current(i *Installer) bool {
	return i.Host.leads(n.program.path) && i.Host.same(n.program) && i.Host.same(n.unit)
}

// same reports, as an error, what a person wants to be other than it is. Another hub has other flags, and goes by those
// of the former.
func (n *next) same(i *Installer) error {
	switch {
	case n.current(i) && !n.chosen:
		return errors.New(hubConfig)
	case !i.Host.same(n.drop):
		return errors.New(n.drop.path)
	}
	return nil
}

// is reports whether all is as it should be.
func (n *next) is(i *Installer) bool {
	return n.current(i) &&
		!slices.ContainsFunc(slices.Concat(n.first, n.last), func(f file) bool { return !i.Host.same(f) }) &&
		!slices.ContainsFunc(n.gone, i.Host.there)
}

// remember reads files as they are; one without content is not there.
func (h *Host) remember(all []file) (was []file, err error) {
	for _, f := range all {
		text, err := h.read(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		was = append(was, file{f.path, f.mode, text})
	}
	return was, nil
}

// recall puts files back as they were.
func (h *Host) recall(was []file) error {
	for _, f := range was {
		var err error
		if f.content == nil {
			_, err = h.remove(f.path)
		} else {
			_, err = h.put(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
