package operator

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
)

// defaultContainer is the annotation of a Pod by which kubectl chooses a container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// flags are those that all commands have.
type flags struct {
	namespace, gate, ca string
	authority           []byte // that --gate-ca-file has
	commands.ClusterFlags
}

func bind(fs *pflag.FlagSet) *flags {
	f := &flags{}
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the pod; none: that of the kubeconfig")
	fs.StringVar(&f.gate, "gate", "", "https://HOST:PORT of weir-gate; none: what the pool of the node is told")
	fs.StringVar(&f.ca, "gate-ca-file", "", "PEM file of its authority, if --gate is given; none: those of this machine")
	f.ClusterFlags = commands.BindCluster(fs)
	return f
}

// target is a pod, and the gate by which its kubelet is reached.
type target struct {
	pod    *corev1.Pod
	config *rest.Config
	client kubernetes.Interface // of the gate
}

// check looks at what is said of the gate, before the cluster is asked.
func (f *flags) check() (err error) {
	switch {
	case f.gate == "" && f.ca != "":
		return cli.Usage("--gate-ca-file", f.ca, "none without --gate")
	case f.gate == "":
		return nil
	}
	if _, err := hostOf(f.gate); err != nil {
		return err
	}
	if f.ca != "" {
		if f.authority, err = os.ReadFile(f.ca); err != nil {
			return cli.Usage("--gate-ca-file", f.ca, err.Error())
		}
	}
	return nil
}

// find reads the pod, and where the gate is.
func (f *flags) find(ctx context.Context, name string) (*target, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c, err := f.Cluster()
	if err != nil {
		return nil, err
	}
	namespace := f.namespace
	if namespace == "" {
		if namespace, _, err = f.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, err
		}
	}
	kube, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	t := &target{}
	if t.pod, err = kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	}
	if t.pod.Spec.NodeName == "" {
		return nil, fmt.Errorf("pod %s/%s has no node yet: kubectl -n %s describe pod %s says why", namespace, name,
			namespace, name)
	}
	at, authority, err := f.where(ctx, kube.CoreV1(), t.pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	if t.config, err = gateConfig(c.Config, at, authority); err != nil {
		return nil, err
	}
	t.client, err = kubernetes.NewForConfig(t.config)
	return t, err
}

// where is the URL of the gate, and the PEM of its authority.
func (f *flags) where(ctx context.Context, kube corev1client.CoreV1Interface, on string) (
	at string, authority []byte, err error) {
	if f.gate != "" {
		return f.gate, f.authority, nil
	}
	node, err := kube.Nodes().Get(ctx, on, metav1.GetOptions{})
	if err != nil {
		return "", nil, unread("node "+on, err)
	}
	pool := node.Labels[contract.NodePoolLabel]
	if pool == "" {
		return "", nil, fmt.Errorf("node %s is of no pool, and weir-gate reaches nodes of pools only: use kubectl itself",
			on)
	}
	name := contract.LeaderHubPrefix + pool
	told, err := kube.Endpoints(contract.ManagerNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", nil, unread("Endpoints "+contract.ManagerNamespace+"/"+name, err)
	}
	if err != nil || told.Annotations[contract.LeaderHubGate] == "" {
		return "", nil, fmt.Errorf("pool %s is told of no weir-gate: set gate.enabled and gate.pods.enabled of the chart, "+
			"as docs/gate.md says, or name the gate by --gate", pool)
	}
	return told.Annotations[contract.LeaderHubGate], []byte(told.Annotations[contract.LeaderHubGateCA]), nil
}

// unread says that where the gate is could not be read.
func unread(what string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not read %s, which says where weir-gate is: name it by --gate and --gate-ca-file", what)
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// hostOf is where a gate is, by its URL.
func hostOf(at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return "", cli.Usage("--gate", at, "https://HOST:PORT")
	}
	return u.Host, nil
}

// gateConfig is a client of the gate with the credentials of one of kube-apiserver.
func gateConfig(of *rest.Config, at string, authority []byte) (*rest.Config, error) {
	host, err := hostOf(at)
	if err != nil {
		return nil, err
	}
	c := rest.CopyConfig(of)
	c.Host, c.APIPath, c.Timeout = "https://"+host, "", 0
	c.Insecure, c.ServerName, c.CAFile, c.CAData, c.NextProtos = false, "", "", authority, nil
	c.Proxy, c.Dial = nil, nil
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return c, nil
}

// containerOf is what the gate is asked about if the user names none: "" leaves it to the gate.
func (t *target) containerOf(named string) string {
	if named != "" {
		return named
	}
	return t.pod.Annotations[defaultContainer]
}

// url is where a subresource of the pod is.
func (t *target) url(subresource string, parameters func(*rest.Request)) *url.URL {
	r := t.client.CoreV1().RESTClient().Post().Namespace(t.pod.Namespace).Resource("pods").Name(t.pod.Name).
		SubResource(subresource)
	parameters(r)
	return r.URL()
}

// upgradeFails begins the errors of client-go about upgrades, which are about the words that follow.
const upgradeFails = "unable to upgrade connection: "

// why says what an error of the gate is about, in one line.
func (t *target) why(err error) error {
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if i := strings.LastIndex(text, upgradeFails); i >= 0 && i+len(upgradeFails) < len(text) {
		text = text[i+len(upgradeFails):]
	}
	gate := t.config.Host
	var refused *url.Error
	switch {
	case text == fmt.Sprintf("pods %q not found", t.pod.Name), text == "the server could not find the requested resource":
		return fmt.Errorf("weir-gate at %s serves no pods: set gate.pods.enabled of the chart, or --pods of weir-gate", gate)
	case errors.As(err, &refused):
		return fmt.Errorf("weir-gate at %s is not reached: %w", gate, refused.Err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("weir-gate at %s does not know you: it takes client certificates and tokens of the cluster", gate)
	}
	return errors.New(text)
}
