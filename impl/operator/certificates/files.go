package certificates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/pki"
)

// authorityFlags name an authority on the disk.
type authorityFlags struct{ prefix, cert, key string }

func (f *authorityFlags) bind(fs *pflag.FlagSet, prefix, about string) {
	f.prefix = prefix
	fs.StringVar(&f.cert, prefix+"-cert", "", "PEM file of the certificate of "+about)
	fs.StringVar(&f.key, prefix+"-key", "", "PEM file of its key")
}

func (f *authorityFlags) given() bool { return f.cert != "" || f.key != "" }

func (f *authorityFlags) load() (*pki.Authority, error) {
	switch "" {
	case f.cert:
		return nil, cli.Usage("--"+f.prefix+"-cert", "", "the path of a PEM file")
	case f.key:
		return nil, cli.Usage("--"+f.prefix+"-key", "", "the path of a PEM file")
	}
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		return nil, cli.Usage("--"+f.prefix+"-cert", f.cert, err.Error())
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		return nil, cli.Usage("--"+f.prefix+"-key", f.key, err.Error())
	}
	a, err := pki.LoadAuthority(cert, key)
	if err != nil {
		return nil, cli.Usage("--"+f.prefix+"-cert", f.cert, err.Error())
	}
	return a, nil
}

// authority makes the authority of a pool, by itself or below one that exists.
func authority(fs *pflag.FlagSet) commands.Run {
	var above authorityFlags
	above.bind(fs, "ca", "an authority that is to sign this one; none: it signs itself")
	pool := fs.String("pool", "", "name of the pool; required")
	dir := fs.String("dir", "", "folder for ca.crt and ca.key, which must not be there; required")
	return func(_ context.Context, _ []string, _, _ io.Writer) error {
		if *dir == "" {
			return cli.Usage("--dir", "", "the path of a folder")
		}
		for _, name := range []string{"ca.crt", "ca.key"} {
			if _, err := os.Lstat(filepath.Join(*dir, name)); !errors.Is(err, os.ErrNotExist) {
				return cli.Usage("--dir", *dir,
					"a folder without "+name+": an authority is not replaced by hand while leaves of it live")
			}
		}
		var a *pki.Authority
		var err error
		if above.given() {
			var by *pki.Authority
			if by, err = above.load(); err != nil {
				return err
			}
			a, err = by.PoolAuthority(*pool, time.Now())
		} else {
			a, err = pki.NewPoolAuthority(*pool, time.Now())
		}
		if err != nil {
			return Wrong(err)
		}
		key, err := a.KeyPEM()
		if err != nil {
			return err
		}
		_, _, err = (&pki.Pair{CertPEM: a.CertPEM(), KeyPEM: key}).Write(*dir, "ca")
		return err
	}
}

// files makes all files of a pool.
func files(fs *pflag.FlagSet) commands.Run {
	var ofPool, ofCluster authorityFlags
	ofPool.bind(fs, "ca", "the pool's authority, see weir pki authority; required")
	ofCluster.bind(fs, "cluster-ca",
		"the authority that kube-apiserver trusts; without it the files for the cloud are not made")
	var f fileMaker
	fs.StringVar(&f.pool, "pool", "", "name of the pool; required")
	fs.StringVar(&f.dir, "dir", "", "folder for the files, which replace those that are there; required")
	fs.DurationVar(&f.life, "life", 0, "of all certificates; 0: the usual life of each kind")
	nodes := fs.StringSlice("node", nil, "name of a node; may be repeated")
	leaders := fs.StringSlice("leader", nil,
		"name of a --node that may lead where coordinators have --leaders-only; may be repeated")
	coordinators := fs.StringArray("coordinator", nil,
		"HOST[,HOST…] of the coordinator, or NAME=HOST[,HOST…] of one replica of several; may be repeated")
	people := fs.StringSlice("viewer", nil, "name of a person who may read at the coordinator; may be repeated")
	stewards := fs.StringSlice("operator", nil, "name of a person who may also clear its Leases; may be repeated")
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error {
		f.now, f.stdout = time.Now(), stdout
		if f.dir == "" {
			return cli.Usage("--dir", "", "the path of a folder")
		}
		for _, name := range *leaders {
			if !slices.Contains(*nodes, name) {
				return cli.Usage("--leader", name, "one of --node: "+strings.Join(*nodes, ", "))
			}
		}
		if len(*nodes)+len(*coordinators)+len(*people)+len(*stewards) == 0 {
			return cli.Usage("--node, --coordinator, --viewer, --operator", "", "one at least: whose files are to be made")
		}
		pool, err := ofPool.load()
		if err != nil {
			return err
		}
		if err := pki.CheckAuthority(pool.Cert(), f.pool); err != nil {
			return cli.Usage("--ca-cert", ofPool.cert, "the authority of this pool, see weir pki authority: "+err.Error())
		}
		for _, text := range *coordinators {
			name, hosts, replica := strings.Cut(text, "=")
			if !replica {
				name, hosts = "", text
			}
			s := pki.Subject{Name: name, Hosts: strings.Split(hosts, ",")}
			if replica {
				f.make("--coordinator", pool, pki.Replica, s, "coordinator-"+name, "peer")
			}
			f.make("--coordinator", pool, pki.Coordinator, s, strings.TrimSuffix("coordinator-"+name, "-"), "serving")
		}
		for _, node := range *nodes {
			f.make("--node", pool, pki.Hub, pki.Subject{Node: node, Leads: slices.Contains(*leaders, node)}, node,
				"coordinator-client")
		}
		for _, name := range *people {
			f.make("--viewer", pool, pki.Viewer, pki.Subject{Name: name}, "viewer", name)
		}
		for _, name := range *stewards {
			f.make("--operator", pool, pki.Operator, pki.Subject{Name: name}, "operator", name)
		}
		if ofCluster.given() {
			cluster, err := ofCluster.load()
			if err != nil {
				return err
			}
			for _, node := range *nodes {
				f.make("--node", cluster, pki.HubAtCloud, pki.Subject{Node: node}, node, "cloud-hub")
				f.make("--node", cluster, pki.Forwarder, pki.Subject{Node: node}, node, "delegate-client")
			}
		}
		if f.err != nil {
			return f.err
		}
		_, err = pki.WriteFile(f.dir, "ca.crt", pool.CertPEM())
		return err
	}
}

// fileMaker makes certificates until one fails, which is the fault of the flag that asked for it.
type fileMaker struct {
	pool, dir string
	life      time.Duration
	now       time.Time
	stdout    io.Writer
	err       error
}

func (f *fileMaker) make(flag string, a *pki.Authority, k pki.Kind, s pki.Subject, folder, name string) {
	if f.err != nil {
		return
	}
	i, life := pki.Must(k), f.life
	if life == 0 {
		life = i.Life.Usual
	}
	if k == pki.Forwarder { // a day, since anyone who makes files does not make them again each hour
		life = i.Life.Most
	}
	s.Pool = f.pool
	pair, err := a.Grant(i, s, f.now, life)
	var m *pki.MismatchError
	if errors.As(err, &m) {
		err = cli.Usage(flag, m.Value, m.Field+": "+m.Allowed)
	}
	if err != nil {
		f.err = err
		return
	}
	cert, _, err := pair.Write(filepath.Join(f.dir, folder), name)
	if err != nil {
		f.err = err
		return
	}
	fmt.Fprintln(f.stdout, cert)
}
