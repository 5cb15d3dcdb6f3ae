package commands

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // ways to log in that a kubeconfig may name
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// ClusterFlags say which cluster is meant, as kubectl's do.
type ClusterFlags struct{ *genericclioptions.ConfigFlags }

// answers is for one answer of a cluster.
const answers = "30s"

// BindCluster declares them. What is about namespaces is left out: Weir's objects have their places.
func BindCluster(fs *pflag.FlagSet) ClusterFlags {
	f := ClusterFlags{genericclioptions.NewConfigFlags(true)}
	f.Namespace, f.CacheDir, f.DisableCompression = nil, nil, nil
	*f.Timeout = answers
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(own)
	seen := sets.New[string]()
	fs.VisitAll(func(o *pflag.Flag) { seen.Insert(o.Name) })
	own.VisitAll(func(o *pflag.Flag) {
		if !seen.Has(o.Name) {
			fs.AddFlag(o)
		}
	})
	return f
}

// Cluster is a client of the cluster that is meant.
func (f ClusterFlags) Cluster() (*Cluster, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, cli.Usage("--kubeconfig", *f.KubeConfig, strings.Join(strings.Fields(err.Error()), " "))
	}
	return NewCluster(config)
}

// Cluster is a client of a cluster.
type Cluster struct {
	client.Client
	Config *rest.Config
	Now    func() time.Time
}

// NewCluster makes one.
func NewCluster(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // a command asks a few things, and all at once
	config.WarningHandler = rest.NoWarnings{}
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return nil, err
	}
	return &Cluster{Client: c, Config: config, Now: time.Now}, nil
}

func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubescheme.AddToScheme, appsv1.AddToScheme, nodepool.AddToScheme, poolv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}
