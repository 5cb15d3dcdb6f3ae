package chart

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

const (
	release   = "weir"
	namespace = "weir-system"
	patience  = 3 * time.Minute
	poll      = 100 * time.Millisecond
)

// helm is the command, and the folder of the chart. It is built where make has not done so.
type helm struct {
	path, chart string
	kubeconfig  string // of an administrator; empty: none
	home        string // for what it keeps of its own
}

func findHelm(t *testing.T) *helm {
	t.Helper()
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	h := &helm{path: filepath.Join(root, "bin/helm"), chart: filepath.Join(root, "charts/weir"), home: t.TempDir()}
	if _, err := os.Stat(h.path); err == nil {
		return h
	}
	h.path = filepath.Join(t.TempDir(), "helm")
	spec := gobuild.Spec{
		Name: "helm", Dir: filepath.Join(root, "charts/helm"), Packages: []string{"helm.sh/helm/v4/cmd/helm"},
		Output: filepath.Dir(h.path), LDFlags: "-s -w",
	}
	if err := gobuild.Run(t.Context(), proctest.Spawner(t), spec, func(m string) { t.Log(m) }); err != nil {
		t.Fatal(err)
	}
	return h
}

// run types a command. Its error is what it said on standard error.
func (h *helm) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.path, args...)
	cmd.Env = []string{"HOME=" + h.home, "KUBECONFIG=" + h.kubeconfig, "PATH=" + os.Getenv("PATH")}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// template renders the chart, without hooks.
func (h *helm) template(t *testing.T, args ...string) string {
	t.Helper()
	k, err := cloud.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.run(t.Context(),
		append([]string{"template", release, h.chart, "--namespace", namespace, "--kube-version", k.String()}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objects are the documents of a YAML stream.
func objects(t *testing.T, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	docs := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := docs.Read()
		if err != nil {
			return out
		}
		data, err := yaml.ToJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		if err := json.Unmarshal(data, &tree); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
		if len(tree) > 0 {
			out = append(out, &unstructured.Unstructured{Object: tree})
		}
	}
}

// cluster is a stock one.
type cluster struct {
	*cloud.Cloud
	client  kubernetes.Interface
	dynamic dynamic.Interface
	disco   discovery.DiscoveryInterface
}

// newCluster starts one, and finds the binaries of what else a test wants.
func newCluster(t *testing.T, names ...string) *cluster {
	t.Helper()
	c, _ := cloudtest.Start(t, names...)
	out := &cluster{Cloud: c, client: c.Client()}
	out.disco = out.client.Discovery()
	var err error
	if out.dynamic, err = dynamic.NewForConfig(c.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	// The testbed has given these out; a stock cluster knows nothing of them.
	for _, role := range []string{"weir:hub", "weir:hub-topology"} {
		if err := out.client.RbacV1().ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// control runs kube-controller-manager until the test ends.
func (c *cluster) control(t *testing.T) {
	t.Helper()
	cmd, err := c.ControllerManager(cloud.StockTimers())
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "kube-controller-manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	p, err := proctest.Spawner(t).Start(proc.Spec{
		Name: cmd.Name, Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Output: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
}

// admin is a kubeconfig file that may do everything.
func (c *cluster) admin(t *testing.T) string { return c.account(t, "administrator", "system:masters") }

// account is a kubeconfig file of a user. The authorizer sees no difference to a token.
func (c *cluster) account(t *testing.T, user string, groups ...string) string {
	t.Helper()
	path, err := c.Kubeconfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// resource finds where objects of a kind are.
func (c *cluster) resource(t *testing.T, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.disco))
	m, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		t.Fatal(err)
	}
	if m.Scope.Name() == "namespace" {
		return c.dynamic.Resource(m.Resource).Namespace(o.GetNamespace())
	}
	return c.dynamic.Resource(m.Resource)
}

// everything are the names of all objects, but those that come and go by themselves.
func (c *cluster) everything(t *testing.T) map[string]bool {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(c.disco)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !strings.Contains(strings.Join(r.Verbs, " "), "list") || r.Kind == "Event" || r.Kind == "APIService" ||
				r.Kind == "ComponentStatus" {
				continue
			}
			items, err := c.dynamic.Resource(group.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %s: %v", r.Name, err)
			}
			for _, o := range items.Items {
				out[strings.Trim(r.Kind+" "+o.GetNamespace()+"/"+o.GetName(), "/")] = true
			}
		}
	}
	return out
}

// kubelet runs what pods of the release's namespace ask for, until the test ends. Only what ends by itself is there:
// hooks.
type kubelet struct {
	c *cluster

	mu      sync.Mutex
	said    map[string]string // by the app of the pod: what its last one said
	granted []string          // bindings of the last hook, when it has done its work
	fails   string            // an app of which pods fail at once
}

func (c *cluster) kubelet(t *testing.T) *kubelet {
	k := &kubelet{c: c, said: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				k.look(ctx, t)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return k
}

func (k *kubelet) look(ctx context.Context, t *testing.T) {
	pods, err := k.c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil {
			k.run(ctx, t, &p)
		}
	}
}

// run does what the pod says: weir-manager, as the pod's account.
func (k *kubelet) run(ctx context.Context, t *testing.T, p *corev1.Pod) {
	var said bytes.Buffer
	user := "system:serviceaccount:" + namespace + ":" + p.Spec.ServiceAccountName
	config := k.c.account(t, user, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	app := p.Labels["app.kubernetes.io/name"]
	k.mu.Lock()
	err := errors.New("it cannot be started")
	fails := k.fails == app
	k.mu.Unlock()
	if !fails {
		err = manager.Run(ctx, append(p.Spec.Containers[0].Args, "--kubeconfig="+config), &said, &said)
	}
	granted := k.bindings(ctx, t, p.Spec.ServiceAccountName)
	p.Status.Phase = corev1.PodSucceeded
	exit := int32(0)
	if err != nil {
		said.WriteString(err.Error())
		p.Status.Phase, exit = corev1.PodFailed, 1
	}
	k.mu.Lock()
	k.said[app], k.granted = said.String(), granted
	k.mu.Unlock()
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: exit},
		},
	}}
	if _, err := k.c.client.CoreV1().Pods(namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil &&
		ctx.Err() == nil {
		t.Logf("status of pod %s: %v", p.Name, err)
	}
}

// bindings are those of the name of an account.
func (k *kubelet) bindings(ctx context.Context, t *testing.T, account string) (names []string) {
	all, err := k.c.client.RbacV1().ClusterRoleBindings().List(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + account})
	if err == nil {
		for _, b := range all.Items {
			names = append(names, b.Name)
		}
	}
	in, also := k.c.client.RbacV1().RoleBindings("").List(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + account})
	if err := errors.Join(err, also); err != nil {
		if ctx.Err() == nil {
			t.Errorf("bindings of %s: %v", account, err)
		}
		return names
	}
	for _, b := range in.Items {
		names = append(names, b.Namespace+"/"+b.Name)
	}
	return names
}

func (k *kubelet) heard(app string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.said[app]
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		missing := what()
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", patience, missing)
		}
	}
}
