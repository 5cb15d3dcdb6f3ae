package operator

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/operator/certificates"
	"github.com/weir-edge/weir/impl/pki"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// person is for whom weir pool kubeconfig is.
type person struct {
	identity pki.Identity
	subject  pki.Subject
	key      string // its file
	request  string // a file, if the key is somewhere else
	life     time.Duration
	signed   []byte // the request
}

// poolKubeconfig prints one for a person, against the coordinator of a pool.
func poolKubeconfig(fs *pflag.FlagSet) commands.Run {
	var p person
	kind := fs.String("kind", string(pki.Viewer), "viewer, who reads; or operator, who clears Leases of the pool, too")
	fs.StringVar(&p.subject.Name, "name", "", "name of the person; required")
	fs.StringVar(&p.key, "key", "",
		"file of the person's private key, which the kubeconfig names; it is made if it does not exist; required")
	fs.StringVar(&p.request, "request", "",
		"file of what weir pki request has printed, where the key stays with the person: then --key is its path there")
	fs.DurationVar(&p.life, "life", 0, "of the certificate; 0: the usual life of the kind")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		p.subject.Pool = args[0]
		if *kind != string(pki.Viewer) && *kind != string(pki.Operator) {
			return cli.Usage("--kind", *kind, "viewer or operator")
		}
		p.identity = pki.Must(pki.Kind(*kind))
		if err := p.check(); err != nil {
			return err
		}
		cluster, err := flags.Cluster()
		if err != nil {
			return err
		}
		servers, err := coordinatorsOf(ctx, cluster, p.subject.Pool)
		if err != nil {
			return err
		}
		authority, err := authorityOf(ctx, cluster, p.subject.Pool)
		if err != nil {
			return err
		}
		text, err := p.kubeconfig(servers, authority, cluster.Now())
		if err == nil {
			_, err = stdout.Write(text)
		}
		return err
	}
}

// check reports what is invalid, before a key is made for nothing.
func (p *person) check() (err error) {
	if p.life == 0 {
		p.life = p.identity.Life.Usual
	}
	if p.key == "" {
		return cli.Usage("--key", "", "the path of a file")
	}
	if err := p.identity.CheckLife(p.life); err != nil {
		return certificates.Wrong(err)
	}
	if _, err := p.identity.Template(p.subject, time.Time{}, p.life); err != nil {
		return certificates.Wrong(err)
	}
	if p.request == "" {
		return nil
	}
	if p.signed, err = os.ReadFile(p.request); err != nil {
		return cli.Usage("--request", p.request, err.Error())
	}
	return nil
}

// asks is the request, by a key that is here or by what its holder has signed.
func (p *person) asks() (*x509.CertificateRequest, error) {
	if p.request == "" {
		key, err := certificates.KeyOf(p.key)
		if err != nil {
			return nil, err
		}
		if p.signed, err = p.identity.Request(p.subject, key); err != nil {
			return nil, certificates.Wrong(err)
		}
	}
	r, err := pki.ParseRequest(p.signed)
	if err == nil {
		err = p.identity.CheckRequest(r, p.subject)
	}
	if err != nil {
		return nil,
			cli.Usage("--request", p.request, fmt.Sprintf("what weir pki request --kind %s --pool %s --name %s prints: %v",
				p.identity.Kind, p.subject.Pool, p.subject.Name, err))
	}
	return r, nil
}

// kubeconfig is the text: a context for each replica of the coordinator, of which the first is the current one.
func (p *person) kubeconfig(servers []string, by *pki.Succession, now time.Time) ([]byte, error) {
	r, err := p.asks()
	if err != nil {
		return nil, err
	}
	cert, err := by.Signer.Answer(p.identity, p.subject, r, now, p.life)
	if err != nil {
		return nil, err
	}
	key := p.key
	if p.request == "" {
		if key, err = filepath.Abs(p.key); err != nil {
			return nil, err
		}
	}
	c := clientcmdapi.NewConfig()
	c.AuthInfos[p.subject.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKey: key}
	for n, server := range servers {
		name := p.subject.Pool
		if n > 0 {
			name = fmt.Sprintf("%s-%d", name, n+1)
		}
		c.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: by.TrustPEM()}
		c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: p.subject.Name}
	}
	c.CurrentContext = p.subject.Pool
	return clientcmd.Write(*c)
}

// coordinatorsOf are where the coordinator of a pool is asked, one or three.
func coordinatorsOf(ctx context.Context, c *commands.Cluster, name string) ([]string, error) {
	p := &poolv1.Pool{}
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, p); {
	case apierrors.IsNotFound(err):
		return nil, cli.Usage("NAME", name, "the name of a Pool: weir pool list")
	case err != nil:
		return nil, fmt.Errorf("read Pool %s: %w", name, err)
	case p.Spec.Mode == poolv1.ModeLeaderHubs:
		return nil, cli.Usage("NAME", name, "a pool with a coordinator: hubs of this one are its caches, and take no people")
	case len(p.Status.Coordinators) == 0:
		return nil, fmt.Errorf("pool %s: its coordinator has no address yet: weir check --pool %[1]s tells why", name)
	}
	return p.Status.Coordinators, nil
}

// authorityOf is the authority of a pool with its key: who may read it may sign.
func authorityOf(ctx context.Context, c *commands.Cluster, pool string) (*pki.Succession, error) {
	s := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKey{Namespace: contract.KeyNamespace, Name: contract.AuthorityPrefix + pool}, s)
	if apierrors.IsNotFound(err) {
		err = errors.New("there is none: weir-manager makes it with the first certificate of the pool; one that is kept " +
			"elsewhere signs by weir pki files --viewer")
	}
	var a *pki.Succession
	if err == nil {
		a, err = pki.LoadSuccession(s.Data)
	}
	if err == nil {
		err = pki.CheckAuthority(a.Signer.Cert(), pool)
	}
	if err == nil {
		err = a.MaySign(c.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("authority of pool %s, Secret %s/%s%[1]s: %[4]w", pool, contract.KeyNamespace,
			contract.AuthorityPrefix, err)
	}
	return a, nil
}
