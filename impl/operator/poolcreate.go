package operator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// repository is where releases of weir-coordinator are.
const repository = "ghcr.io/weir-edge/weir-coordinator"

// wantedPool is what weir pool create makes.
type wantedPool struct {
	name        string
	coordinator bool
	image       string
	replicas    int32
	servers     []string
	leaders     int32
}

func poolCreate(fs *pflag.FlagSet) commands.Run {
	var w wantedPool
	fs.BoolVar(&w.coordinator, "coordinator", false, "weir-manager runs a coordinator on a node of the pool")
	fs.StringVar(&w.image, "coordinator-image", "",
		"its image, which is added to those that weir-manager may run; default: that of the release, also after an upgrade, "+
			"or where Helm has not installed one, "+repository+" of this program's version")
	fs.Int32Var(&w.replicas, "coordinator-replicas", 1, "how many weir-manager runs: 1, or 3 of which any one may die")
	fs.StringSliceVar(&w.servers, "coordinator-server", nil,
		"https://host:port of a coordinator that you run yourself; repeated for three replicas")
	fs.Int32Var(&w.leaders, "leader-hubs", 0, "no coordinator: so many hubs of the pool read the cloud for all others")
	form := fs.StringP("output", "o", "", "yaml: print both objects, for Git or an editor, and make nothing")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		w.name = args[0]
		if err := w.check(); err != nil {
			return err
		}
		switch *form {
		case "":
		case "yaml":
			return w.print(stdout, stderr)
		default:
			return cli.Usage("--output", *form, "yaml")
		}
		cluster, err := flags.Cluster()
		if err != nil {
			return err
		}
		if err := w.make(ctx, cluster, stdout); err != nil {
			return err
		}
		fmt.Fprintf(stdout,
			"next, its nodes:\n  kubectl label node NODE… %s=%s\na Job of weir-manager leads each to its hub; where that is "+
				"switched off, on each of them:\n  weir node join --pool %[2]s\n", contract.NodePoolLabel, w.name)
		return nil
	}
}

// release is the one that this program is of; "": it is of none.
func release() string {
	v, _, _ := strings.Cut(cli.Version(), " ")
	if !strings.HasPrefix(v, "v") || strings.Contains(v, "-") {
		return ""
	}
	return v
}

// check reports what is invalid.
func (w *wantedPool) check() error {
	if why := validation.IsDNS1035Label(contract.LeaderHubPrefix + w.name); len(why) > 0 {
		return cli.Usage("NAME", w.name,
			"a name that a Service "+contract.LeaderHubPrefix+"NAME can have: small letters, digits and -, 52 at most")
	}
	ways := 0
	for _, given := range []bool{w.coordinator || w.image != "", len(w.servers) > 0, w.leaders > 0} {
		if given {
			ways++
		}
	}
	switch {
	case w.leaders < 0 || w.leaders > 64:
		return cli.Usage("--leader-hubs", w.leaders, "1 to 64")
	case ways != 1:
		return cli.Usage("--coordinator, --coordinator-server, --leader-hubs", ways,
			"one of the three: which hub reads the cloud for the pool")
	case w.replicas != 1 && w.replicas != 3, w.replicas == 3 && !w.coordinator && w.image == "":
		return cli.Usage("--coordinator-replicas", w.replicas, "1, or 3 with --coordinator")
	case len(w.servers) != 0 && len(w.servers) != 1 && len(w.servers) != 3:
		return cli.Usage("--coordinator-server", strings.Join(w.servers, ","), "one, or three replicas")
	}
	return nil
}

// objects are the NodePool and the Pool.
func (w *wantedPool) objects() []client.Object {
	np := &nodepool.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: nodepool.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: nodepool.Spec{Type: nodepool.Edge, InterConnectivity: true},
	}
	own := &poolv1.Pool{
		TypeMeta:   metav1.TypeMeta{APIVersion: poolv1.GroupVersion.String(), Kind: "Pool"},
		ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: poolv1.Spec{Mode: poolv1.ModeCoordinator},
	}
	switch {
	case w.leaders > 0:
		np.Spec.EnableLeaderElection, np.Spec.LeaderReplicas, np.Spec.LeaderElectionStrategy = true, w.leaders,
			nodepool.Random
		own.Spec.Mode = poolv1.ModeLeaderHubs
	case len(w.servers) > 0:
		own.Spec.Coordinator = &poolv1.Coordinator{Servers: w.servers}
	default:
		own.Spec.Coordinator = &poolv1.Coordinator{Image: w.image, Replicas: w.replicas}
	}
	return []client.Object{np, own}
}

// print writes them as a person would, in YAML, without what the cluster adds.
func (w *wantedPool) print(stdout, stderr io.Writer) error {
	for i, o := range w.objects() {
		text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		text["metadata"] = map[string]any{"name": w.name}
		delete(text, "status")
		if i > 0 {
			fmt.Fprintln(stdout, "---")
		}
		if _, err := commands.Write(stdout, "yaml", text); err != nil {
			return err
		}
	}
	if w.image != "" {
		fmt.Fprintf(stderr, "weir-manager runs %s if it is a line of %s in ConfigMap %s/%s\n", w.image,
			contract.CoordinatorImagesKey, contract.ManagerNamespace, contract.CoordinatorImages)
	}
	return nil
}

// make makes them. What is there already is left as it is, and told.
func (w *wantedPool) make(ctx context.Context, c *commands.Cluster, stdout io.Writer) error {
	if w.coordinator || w.image != "" {
		if err := w.allow(ctx, c, release(), stdout); err != nil {
			return err
		}
	}
	for _, o := range w.objects() {
		kind := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", o), "*pool."), "*nodepool.")
		switch err := c.Create(ctx, o); {
		case meta.IsNoMatchError(err):
			return fmt.Errorf("create %s %s: the cluster does not know them: install Weir first", kind, w.name)
		case apierrors.IsAlreadyExists(err):
			fmt.Fprintf(stdout, "%s %s is there already, and was left as it is\n", kind, w.name)
		case err != nil:
			return fmt.Errorf("create %s %s: %w", kind, w.name, err)
		default:
			fmt.Fprintf(stdout, "%s %s created\n", kind, w.name)
		}
	}
	return nil
}

// allow adds the image to those that weir-manager may run. One that is not given is left to the release, or is this
// program's if the cluster tells of no release.
func (w *wantedPool) allow(ctx context.Context, c *commands.Cluster, release string, stdout io.Writer) error {
	m := &corev1.ConfigMap{}
	fail := func(err error) error {
		return fmt.Errorf("add %s to ConfigMap %s/%s, which has the images that weir-manager may run: %w",
			cmp.Or(w.image, "the release's image"), contract.ManagerNamespace, contract.CoordinatorImages, err)
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: contract.ManagerNamespace, Name: contract.CoordinatorImages}, m)
	switch {
	case w.image == "" && apierrors.IsForbidden(err): // who may not look leaves it to the release, too
		return nil
	case err != nil:
		return fail(err)
	case w.image == "" && strings.TrimSpace(m.Data[contract.CoordinatorImagesRelease]) != "":
		return nil
	case w.image == "" && release == "":
		return cli.Usage("--coordinator-image", "",
			"an image of weir-coordinator: the cluster tells of none, and this program is of no release whose image "+
				"it could name")
	case w.image == "":
		w.image = repository + ":" + release
	}
	images := strings.Fields(m.Data[contract.CoordinatorImagesKey])
	if slices.Contains(images, w.image) {
		return nil
	}
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data[contract.CoordinatorImagesKey] = strings.Join(append(images, w.image), "\n")
	if err := c.Update(ctx, m); err != nil {
		return fail(err)
	}
	fmt.Fprintf(stdout, "weir-manager may run %s\n", w.image)
	return nil
}
