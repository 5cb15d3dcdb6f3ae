package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/proc"
)

const (
	probeTime  = 3 * time.Second
	startAgain = time.Second // after a process has ended
)

// container is the process of a Pod.
type container struct {
	uid      types.UID
	image    string
	process  *proc.Process
	number   int // of its starts
	started  metav1.Time
	told     corev1.PodStatus // that the API server has
	changed  metav1.Time      // when it became ready, or unready
	wasReady bool
}

// begin starts the process of a Pod, after one that has ended.
func (a *Agent) begin(p *corev1.Pod, before *container) (*container, error) {
	c := &container{uid: p.UID, image: p.Spec.Containers[0].Image, changed: metav1.Now(), number: 1}
	if before != nil {
		if time.Since(before.started.Time) < startAgain {
			return before, nil
		}
		c.number, c.changed, c.wasReady = before.number+1, before.changed, before.wasReady
	}
	args, err := a.args(p)
	if err != nil {
		return nil, failed(p, err)
	}
	c.process, err = a.Spawner.Start(proc.Spec{
		Name: p.Name + " on " + a.Node, Path: a.Commands[c.image], Args: args, LogFile: a.LogFile(),
	})
	if err != nil {
		return nil, failed(p, err)
	}
	c.started = metav1.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs[p.UID] = c
	return c, nil
}

// args are those of the Pod's container, with folders of this machine in the place of those of the host.
func (a *Agent) args(p *corev1.Pod) ([]string, error) {
	main := p.Spec.Containers[0]
	folders := map[string]string{}
	for _, m := range main.VolumeMounts {
		for _, v := range p.Spec.Volumes {
			if v.Name != m.Name {
				continue
			}
			if v.HostPath == nil {
				return nil, fmt.Errorf("%w: %s", errNoPath, v.Name)
			}
			folders[m.MountPath] = filepath.Join(a.Root, v.HostPath.Path)
			if err := os.MkdirAll(folders[m.MountPath], 0o755); err != nil {
				return nil, err
			}
		}
	}
	args := make([]string, 0, len(main.Args)+1)
	for _, arg := range main.Args {
		for path, folder := range folders {
			arg = strings.ReplaceAll(arg, "="+path, "="+folder)
		}
		args = append(args, arg)
	}
	return append(args, "--bind-address="+a.Address), nil
}

// tell says to the API server how a Pod is, if that has changed.
func (a *Agent) tell(ctx context.Context, client kubernetes.Interface, p *corev1.Pod, c *container) error {
	running, ready := c.process != nil && c.process.Running(), false
	if running {
		ready = a.probe(ctx, p) == nil
	}
	if ready != c.wasReady {
		c.wasReady, c.changed = ready, metav1.Now()
	}
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: a.Address, PodIP: a.Address, StartTime: &p.CreationTimestamp,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: is, LastTransitionTime: c.changed},
			{Type: corev1.ContainersReady, Status: is, LastTransitionTime: c.changed},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			//nolint:gosec // of starts
			Name: p.Spec.Containers[0].Name, Image: c.image, Ready: ready, RestartCount: int32(c.number - 1),
			ContainerID: fmt.Sprintf("sim://%s-%d", c.uid, c.started.UnixNano()),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: c.started}},
		}},
	}
	seen := false // somebody else says otherwise: the node lifecycle controller, of a node that it does not hear
	for _, o := range p.Status.Conditions {
		seen = seen || o.Type == corev1.PodReady && o.Status == is
	}
	if seen && equality.Semantic.DeepEqual(status, c.told) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err = client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status"); err == nil {
		c.told = status
	}
	return err
}

// probe asks whether a Pod is ready.
func (a *Agent) probe(ctx context.Context, p *corev1.Pod) error {
	probe := p.Spec.Containers[0].ReadinessProbe
	if probe == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if probe.TCPSocket != nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.at(probe.TCPSocket.Port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	get := probe.HTTPGet
	if get == nil || get.Scheme != corev1.URISchemeHTTPS {
		return fmt.Errorf("the probe of %s is none that is known here", p.Name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a.at(get.Port)+get.Path, nil)
	if err != nil {
		return err
	}
	resp, err := a.probes.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("%s answers %s", get.Path, resp.Status)
	}
	return nil
}

func (a *Agent) at(port intstr.IntOrString) string { return net.JoinHostPort(a.Address, port.String()) }
