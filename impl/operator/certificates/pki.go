package certificates

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/pki"
)

// identityFlags say whose certificate is meant.
type identityFlags struct {
	kind             string
	pool, node, name string
	hosts            []string
}

func (f *identityFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.kind, "kind", "", "kind of the identity, see weir pki table")
	fs.StringVar(&f.pool, "pool", "", "name of the pool")
	fs.StringVar(&f.node, "node", "", "name of the node")
	fs.StringVar(&f.name, "name", "", "name of the replica or of the person")
	fs.StringSliceVar(&f.hosts, "host", nil, "IP address or DNS name of a server; may be repeated")
}

func (f *identityFlags) subject() pki.Subject {
	return pki.Subject{Pool: f.pool, Node: f.node, Name: f.name, Hosts: f.hosts}
}

// Wrong makes wrong usage of a MismatchError in what the flags of an identity say.
func Wrong(err error) error {
	var m *pki.MismatchError
	flags := map[string]string{
		"kind": "--kind", "pool": "--pool", "node": "--node", "name": "--name", "addresses": "--host", "life": "--life",
		"path length": "--ca-cert", "end": "--ca-cert",
	}
	if errors.As(err, &m) && flags[m.Field] != "" {
		return cli.Usage(flags[m.Field], m.Value, m.Allowed)
	}
	return err
}

// table prints what certificates there are.
func table(_ *pflag.FlagSet) commands.Run {
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error {
		w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "KIND\tCOMMON NAME\tORGANIZATIONS\tUSES\tAUTHORITY\tLIFE (MOST)\tSIGNER\tOF")
		for _, i := range pki.Identities() {
			or := func(s string) string {
				if s == "" {
					return "-"
				}
				return s
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s (%s)\t%s\t%s\n",
				i.Kind, i.CommonName, or(strings.Join(i.Organizations, " ")), i.Usages(), i.Issuer, i.Life.Usual, i.Life.Most,
				or(i.Signer), i.About)
		}
		return w.Flush()
	}
}

// request prints a request.
func request(fs *pflag.FlagSet) commands.Run {
	var f identityFlags
	f.bind(fs)
	keyFile := fs.String("key", "", "file of the private key; it is made if it does not exist; required")
	manifest := fs.String("manifest", "",
		"name: print a CertificateSigningRequest of this name, for kubectl create -f -, in place of the request")
	life := fs.Duration("life", 0, "of the certificate, in the manifest; 0: the usual life of the kind")
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error {
		i, err := pki.Of(pki.Kind(f.kind))
		if err != nil {
			return Wrong(err)
		}
		switch {
		case *keyFile == "":
			return cli.Usage("--key", "", "the path of a file")
		case *manifest != "" && i.Signer == "":
			return cli.Usage("--manifest", *manifest, "a kind that weir-manager signs or approves, see weir pki table")
		}
		if *life == 0 {
			*life = i.Life.Usual
		}
		if err := i.CheckLife(*life); err != nil {
			return Wrong(err)
		}
		if _, err := i.Template(f.subject(), time.Time{}, *life); err != nil { // before a key is made for nothing
			return Wrong(err)
		}
		key, err := KeyOf(*keyFile)
		if err != nil {
			return err
		}
		text, err := i.Request(f.subject(), key)
		if err != nil {
			return Wrong(err)
		}
		if *manifest != "" {
			if text, err = manifestOf(i, *manifest, text, *life); err != nil {
				return err
			}
		}
		_, err = stdout.Write(text)
		return err
	}
}

func manifestOf(i pki.Identity, name string, request []byte, life time.Duration) ([]byte, error) {
	seconds := int32(life / time.Second)
	r := certificatesv1.CertificateSigningRequest{
		TypeMeta: metav1.TypeMeta{
			APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: i.Signer, ExpirationSeconds: &seconds,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
		},
	}
	if i.Client {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageClientAuth)
	}
	if i.Server {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	return yaml.Marshal(r)
}

// check tells what certificates are, and whether they are good.
func check(fs *pflag.FlagSet) commands.Run {
	var f identityFlags
	f.bind(fs)
	caFile := fs.String("ca", "", "PEM file of the authorities that vouch; required")
	keyFile := fs.String("key", "", "PEM file of the private key that the certificate has to be of; for one FILE")
	within := fs.Duration("within", 0, "a certificate that ends within this time is a failure too")
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		files := args
		switch {
		case len(files) == 0:
			return cli.Usage("arguments", "", "one or more PEM files of certificates")
		case *caFile == "":
			return cli.Usage("--ca", "", "the path of a PEM file")
		case *keyFile != "" && len(files) > 1:
			return cli.Usage("--key", *keyFile, "one certificate to go with it")
		case *within < 0:
			return cli.Usage("--within", *within, "0 or more")
		}
		authorities, err := certificatesOf("--ca", *caFile)
		if err != nil {
			return err
		}
		var key []byte
		if *keyFile != "" {
			if key, err = os.ReadFile(*keyFile); err != nil {
				return cli.Usage("--key", *keyFile, err.Error())
			}
		}
		if f.kind != "" {
			if _, err := pki.Of(pki.Kind(f.kind)); err != nil {
				return Wrong(err)
			}
		}
		failed := 0
		for _, file := range files {
			chain, err := certificatesOf("FILE", file)
			if err != nil {
				return err
			}
			now := time.Now()
			i, s, err := f.judge(chain, key, authorities, now)
			end := chain[0].NotAfter
			if err == nil && end.Sub(now) < *within {
				err = fmt.Errorf("it ends within %s", *within)
			}
			verdict := "good"
			if err != nil {
				verdict, failed = err.Error(), failed+1
			}
			fmt.Fprintf(stdout, "%s: %s (%s), until %s: %s\n", file, describe(i, s), chain[0].Subject,
				end.UTC().Format(time.RFC3339), verdict)
		}
		if failed > 0 {
			return fmt.Errorf("%d of %d certificates are not good", failed, len(files))
		}
		return nil
	}
}

func describe(i pki.Identity, s pki.Subject) string {
	text := string(i.Kind)
	if text == "" {
		return "none of Weir's"
	}
	if s.Pool != "" {
		text += " of pool " + s.Pool
	}
	return text
}

// judge tells what a certificate is and what is wrong with it. Without --kind that is what it says; flags that are
// given have to agree.
func (f *identityFlags) judge(chain []*x509.Certificate, key []byte, authorities []*x509.Certificate, now time.Time) (
	i pki.Identity, s pki.Subject, err error) {
	if f.kind == "" {
		if i, s, err = pki.Recognize(chain[0]); err != nil {
			return i, s, err
		}
		for _, part := range []struct {
			has  *string
			want string
		}{{&s.Pool, f.pool}, {&s.Node, f.node}, {&s.Name, f.name}} {
			if part.want != "" {
				*part.has = part.want
			}
		}
		if len(f.hosts) > 0 {
			s.Hosts = f.hosts
		}
	} else if i, err = pki.Of(pki.Kind(f.kind)); err != nil {
		return i, s, err
	} else {
		s = f.subject()
	}
	if key != nil {
		return i, s, i.CheckPair(&pki.Pair{CertPEM: pki.EncodeCertificates(chain), KeyPEM: key}, s, authorities, now)
	}
	if err := i.CheckCertificate(chain[0], s); err != nil {
		return i, s, err
	}
	return i, s, i.Verify(chain, authorities, now)
}

func certificatesOf(flag, file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usage(flag, file, err.Error())
	}
	certs, err := pki.ParseCertificates(text)
	if err != nil {
		return nil, cli.Usage(flag, file, err.Error())
	}
	return certs, nil
}

// KeyOf reads a private key, and makes one if there is no file.
func KeyOf(file string) (crypto.Signer, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		key, err := pki.NewKey()
		if err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
		if text, err = pki.EncodeKey(key); err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
		_, err = pki.WriteFile(filepath.Dir(file), filepath.Base(file), text)
		return key, err
	}
	if err != nil {
		return nil, cli.Usage("--key", file, err.Error())
	}
	key, err := pki.ParseKey(text)
	if err != nil {
		return nil, cli.Usage("--key", file, err.Error())
	}
	return key, nil
}
