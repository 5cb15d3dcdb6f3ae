package operator

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install"
	"github.com/weir-edge/weir/impl/operator/check"
)

const (
	maxObjects = 5000 // of a kind
	logLines   = 5000
)

// collector fills an archive.
type collector struct {
	*archive
	cluster *commands.Cluster
}

// ofCluster takes what the cluster knows. An error is of the archive: what cannot be read stands in it.
func (c *collector) ofCluster(ctx context.Context) error {
	r, err := check.Run(ctx, c.cluster, check.Options{})
	if err != nil {
		c.failed("check", err)
	}
	v := c.cluster.Read(ctx)
	for name, write := range map[string]func(io.Writer) error{
		"check.txt":   func(w io.Writer) error { return r.Write(w, "table") },
		"check.json":  func(w io.Writer) error { return r.Write(w, "json") },
		"status.yaml": func(w io.Writer) error { return pageOf(v, "").Write(w, "yaml", v.Now) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			c.failed(name, err)
		} else if err := c.add(name, b.Bytes()); err != nil {
			return err
		}
	}
	for kind, err := range v.Failed {
		c.failed(kind, err)
	}
	if err := c.objects("nodepools", v.NodePools); err != nil {
		return err
	}
	if err := c.objects("pools", v.Pools); err != nil {
		return err
	}
	if err := c.lists(ctx); err != nil {
		return err
	}
	return c.logs(ctx)
}

// lists are all objects that matter, in whole.
func (c *collector) lists(ctx context.Context) error {
	in := func(namespace string) client.ListOption { return client.InNamespace(namespace) }
	ours := client.MatchingLabels{"app.kubernetes.io/part-of": "weir"}
	for _, l := range []struct {
		name    string
		list    client.ObjectList
		options []client.ListOption
	}{
		{"nodes", &corev1.NodeList{}, nil},
		{"deployments", &appsv1.DeploymentList{}, []client.ListOption{in(contract.ManagerNamespace), ours}},
		{"pods", &corev1.PodList{}, []client.ListOption{in(contract.ManagerNamespace), ours}},
		{"jobs", &batchv1.JobList{}, []client.ListOption{in(contract.ManagerNamespace), ours}},
		{"services", &corev1.ServiceList{}, []client.ListOption{in(contract.ManagerNamespace), ours}},
		{"endpoints", &corev1.EndpointsList{}, []client.ListOption{in(contract.ManagerNamespace), ours}},
		{"configmaps", &corev1.ConfigMapList{}, []client.ListOption{in(contract.ManagerNamespace), ours}},
		{"configmaps-of-authorities", &corev1.ConfigMapList{}, []client.ListOption{in(contract.KeyNamespace)}},
		{
			"events-of-nodes", &corev1.EventList{}, []client.ListOption{
				in("default"), client.MatchingFields{"involvedObject.kind": "Node"},
			},
		},
		{"events", &corev1.EventList{}, []client.ListOption{in(contract.ManagerNamespace)}},
		{"certificatesigningrequests", &certificatesv1.CertificateSigningRequestList{}, nil},
	} {
		if err := c.cluster.List(ctx, l.list, append(l.options, client.Limit(maxObjects))...); err != nil {
			c.failed(l.name, err)
			continue
		}
		items, err := meta.ExtractList(l.list)
		if err != nil {
			return err
		}
		if err := c.objects(l.name, items); err != nil {
			return err
		}
	}
	return nil
}

// objects adds some as YAML.
func (c *collector) objects(name string, items any) error {
	if list, ok := items.([]runtime.Object); ok {
		for _, o := range list {
			strip(o)
		}
	}
	text, err := yaml.Marshal(items)
	if err != nil {
		c.failed(name, err)
		return nil
	}
	return c.add("cluster/"+name+".yaml", text)
}

// strip takes out what may hold secrets of others, and what nobody reads.
func strip(o runtime.Object) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
		all := m.GetAnnotations()
		delete(all, corev1.LastAppliedConfigAnnotation)
		m.SetAnnotations(all)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		stripPod(&o.Spec)
	case *appsv1.Deployment:
		stripPod(&o.Spec.Template.Spec)
	case *certificatesv1.CertificateSigningRequest:
		o.Spec.Request = nil // long, and who asked stands beside it
	}
}

func stripPod(s *corev1.PodSpec) {
	for _, all := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range all {
			for j := range all[i].Env {
				if all[i].Env[j].Value != "" {
					all[i].Env[j].Value = removed
				}
			}
		}
	}
}

// logs are those of weir-manager and of coordinators that it runs.
func (c *collector) logs(ctx context.Context) error {
	clientset, err := kubernetes.NewForConfig(c.cluster.Config)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := c.cluster.List(ctx, &pods, client.InNamespace(contract.ManagerNamespace),
		client.MatchingLabels{"app.kubernetes.io/part-of": "weir"}, client.Limit(maxObjects)); err != nil {
		c.failed("logs", err)
		return nil
	}
	for _, p := range pods.Items {
		for _, previous := range []bool{false, true} {
			name := "logs/" + p.Name + ".log"
			if previous {
				name = "logs/" + p.Name + ".previous.log"
			}
			lines, limit := int64(logLines), int64(maxFile)
			text, err := clientset.CoreV1().Pods(p.Namespace).GetLogs(p.Name,
				&corev1.PodLogOptions{Previous: previous, TailLines: &lines, LimitBytes: &limit}).DoRaw(ctx)
			if err != nil {
				if !previous { // most have none
					c.failed(name, err)
				}
				continue
			}
			if err := c.add(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofNode takes what this machine knows, if its hub was installed by weir node join.
func (c *collector) ofNode(ctx context.Context) error {
	i, err := install.New(install.Config{})
	if err != nil {
		return err
	}
	s, err := i.Status(ctx)
	if err != nil {
		c.failed("node", err)
	}
	if s.State == "" {
		return nil
	}
	if text, err := yaml.Marshal(s); err == nil {
		if err := c.add("node/status.yaml", text); err != nil {
			return err
		}
	}
	for name, command := range map[string][]string{
		"hub.log":     {"journalctl", "-u", "weir-hub", "-n", strconv.Itoa(logLines), "--no-pager"},
		"kubelet.log": {"journalctl", "-u", "kubelet", "-n", strconv.Itoa(logLines), "--no-pager"},
		"units.txt":   {"systemctl", "cat", "weir-hub", "kubelet"},
	} {
		text, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
		if err != nil {
			c.failed(filepath.Join("node", name), err)
			continue
		}
		if err := c.add("node/"+name, text); err != nil {
			return err
		}
	}
	for _, path := range []string{"/readyz", "/metrics", contract.StatusPath} {
		text, err := i.Ask(ctx, path)
		name := "node/hub-" + filepath.Base(path) + ".txt"
		if err != nil {
			c.failed(name, err)
			continue
		}
		if err := c.add(name, text); err != nil {
			return err
		}
	}
	return nil
}
