package gate

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kubeletPort is where a kubelet listens whose Node does not say.
const kubeletPort = 10250

// containerOf is the container that is meant, as kube-apiserver finds it: the one that is named, or the only one.
func containerOf(pod *corev1.Pod, name string) (string, error) {
	all := containersOf(pod)
	switch {
	case name != "" && !slices.Contains(all, name):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s, choose one of: %v", name,
			pod.Name, all))
	case name != "":
		return name, nil
	case len(pod.Spec.Containers) == 1:
		return pod.Spec.Containers[0].Name, nil
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %v",
		pod.Name, all))
}

// containersOf are the names of all containers, in the order of kube-apiserver.
func containersOf(pod *corev1.Pod) (all []string) {
	for i := range pod.Spec.InitContainers {
		all = append(all, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		all = append(all, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		all = append(all, pod.Spec.EphemeralContainers[i].Name)
	}
	return all
}

// addressOf is where the kubelet of a node listens.
func addressOf(node *corev1.Node) (string, error) {
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port <= 0 {
		port = kubeletPort
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && net.ParseIP(a.Address) != nil {
			return net.JoinHostPort(a.Address, strconv.Itoa(port)), nil
		}
	}
	return "", unreachable(node.Name, "its Node has no InternalIP; look whether its kubelet has ever started")
}

// locationOf is what a kubelet is asked, in the form that kube-apiserver has for it. The scheme is that of the
// connections of a visit, which are decrypted when they are spoken over.
func locationOf(pod *corev1.Pod, container, address string, o podOptions) *url.URL {
	u := &url.URL{Scheme: "http", Host: address, RawQuery: o.query().Encode()}
	switch o := o.(type) {
	case *logOptions:
		u.Path = "/containerLogs/" + pod.Namespace + "/" + pod.Name + "/" + container
	case *streamOptions:
		u.Path = "/" + o.of + "/" + pod.Namespace + "/" + pod.Name + "/" + container
	case *forwardOptions:
		u.Path = "/portForward/" + pod.Namespace + "/" + pod.Name
	}
	return u
}

// query implements podOptions.
func (o *logOptions) query() url.Values {
	q := url.Values{}
	for name, on := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if on {
			q.Set(name, "true")
		}
	}
	for name, n := range map[string]*int64{
		"sinceSeconds": o.SinceSeconds, "tailLines": o.TailLines, "limitBytes": o.LimitBytes,
	} {
		if n != nil {
			q.Set(name, strconv.FormatInt(*n, 10))
		}
	}
	if o.SinceTime != nil {
		q.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	if o.Stream != nil {
		q.Set("stream", *o.Stream)
	}
	return q
}

// query implements podOptions.
func (o *streamOptions) query() url.Values {
	q := url.Values{}
	for name, on := range map[string]bool{
		corev1.ExecStdinParam: o.Stdin, corev1.ExecStdoutParam: o.Stdout, corev1.ExecStderrParam: o.Stderr,
		corev1.ExecTTYParam: o.TTY,
	} {
		if on {
			q.Set(name, "1")
		}
	}
	if o.of == exec && len(o.Command) > 0 {
		q["command"] = o.Command
	}
	return q
}

// query implements podOptions.
func (o *forwardOptions) query() url.Values {
	q := url.Values{}
	if len(o.Ports) > 0 {
		all := make([]string, len(o.Ports))
		for i, p := range o.Ports {
			all[i] = strconv.Itoa(int(p))
		}
		q.Set(corev1.PortHeader, strings.Join(all, ","))
	}
	return q
}
