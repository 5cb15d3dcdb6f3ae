package shelter

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/request"
)

// logs is the subresource that is read as any object is. The others are ways to what runs, by an upgrade.
const logs = "log"

// paths are those of the kubelet, by subresource.
var paths = map[string]string{
	logs: "containerLogs", "exec": "exec", "attach": "attach", "portforward": "portForward",
}

// isMeant reports whether a request is for a kubelet.
func isMeant(asked *request.Request) bool {
	return asked.IsResource && !asked.Odd && asked.Resource == (request.Resource{Version: "v1", Name: "pods"}) &&
		asked.Name != "" && asked.Namespace != "" && asked.Rest == "" && !strings.HasSuffix(asked.Path, "/") &&
		paths[asked.Subresource] != "" &&
		(asked.Method == http.MethodGet || asked.Method == http.MethodPost && asked.Subresource != logs)
}

// questions are what a caller has to be allowed, all of it.
func questions(asked *request.Request) []identity.Attributes {
	a, _ := identity.AttributesOf(asked)
	all := []identity.Attributes{a}
	if asked.Subresource != logs && a.Verb != "create" {
		a.Verb = "create"
		all = append(all, a)
	}
	return all
}

// locate is what the kubelet is asked, as kube-apiserver would.
func locate(pod *corev1.Pod, asked *request.Request) (*url.URL, *apierrors.StatusError) {
	switch {
	case asked.Subresource == logs && asked.Upgrade:
		return nil, apierrors.NewBadRequest("without the cloud, logs are read without an upgrade")
	case asked.Subresource != logs && !asked.Upgrade:
		return nil, apierrors.NewBadRequest("Upgrade request required")
	}
	at := &url.URL{Path: "/" + paths[asked.Subresource] + "/" + pod.Namespace + "/" + pod.Name}
	params := url.Values{}
	switch asked.Subresource {
	case logs:
		for _, name := range []string{"follow", "previous", "timestamps"} {
			if asked.IsTrue(name) {
				params.Set(name, "true")
			}
		}
		for _, name := range []string{"sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"} {
			if value := asked.Query.Get(name); value != "" { // the kubelet judges it
				params.Set(name, value)
			}
		}
	case "exec", "attach":
		for name, ofKubelet := range map[string]string{
			"stdin": corev1.ExecStdinParam, "stdout": corev1.ExecStdoutParam, "stderr": corev1.ExecStderrParam,
			"tty": corev1.ExecTTYParam,
		} {
			if asked.IsTrue(name) {
				params.Set(ofKubelet, "1")
			}
		}
		if asked.Subresource == "exec" {
			params["command"] = asked.Query["command"]
		}
	case "portforward":
		if ports := asked.Query["ports"]; len(ports) > 0 {
			params.Set(corev1.PortHeader, strings.Join(ports, ","))
		}
	}
	at.RawQuery = params.Encode()
	if asked.Subresource == "portforward" {
		return at, nil
	}
	container, refusal := containerOf(pod, asked.Query.Get("container"))
	at.Path += "/" + container
	return at, refusal
}

// containerOf is the container that is meant.
func containerOf(pod *corev1.Pod, named string) (string, *apierrors.StatusError) {
	var all []string
	for _, c := range pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		all = append(all, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.Name)
	}
	switch {
	case named != "" && !slices.Contains(all, named):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", named, pod.Name))
	case named != "":
		return named, nil
	case len(pod.Spec.Containers) == 1:
		return pod.Spec.Containers[0].Name, nil
	case len(pod.Spec.Containers) == 0:
		return "", apierrors.NewBadRequest("a container name must be specified for pod " + pod.Name)
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s",
		pod.Name, all))
}
