package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Labels that a kubelet puts on containers.
const (
	podNameLabel       = "io.kubernetes.pod.name"
	podNamespaceLabel  = "io.kubernetes.pod.namespace"
	containerNameLabel = "io.kubernetes.container.name"
)

// container is one line of what GET /containers answers.
type container struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Attempt   uint32 `json:"attempt"`
	State     string `json:"state"`
	ExitCode  int32  `json:"exitCode"`
	StartedAt int64  `json:"startedAt"` // ns since 1970
	Address   string `json:"address"`   // of its pod, as the cluster knows it
}

// steering is how a scenario looks at containers and ends them:
//
//	GET  /healthz
//	GET  /containers                               all of them, as JSON
//	POST /exit?namespace=N&pod=P&container=C&code=1  ends those that run and match; what is left out matches all
func (m *machine) steering() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /containers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m.containers())
	})
	mux.HandleFunc("POST /exit", func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.ParseInt(r.FormValue("code"), 10, 32)
		if err != nil {
			http.Error(w, fmt.Sprintf("code %q: want a number", r.FormValue("code")), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintln(w, m.exit(r.FormValue("namespace"), r.FormValue("pod"), r.FormValue("container"), int32(code)))
	})
	return mux
}

func (m *machine) containers() []container {
	m.RuntimeService.Lock()
	defer m.RuntimeService.Unlock()
	list := make([]container, 0, len(m.RuntimeService.Containers))
	for _, c := range m.RuntimeService.Containers {
		var address string
		if s := m.RuntimeService.Sandboxes[c.SandboxID]; s != nil {
			address = s.Network.GetIp()
		}
		list = append(list, container{
			Namespace: c.Labels[podNamespaceLabel], Pod: c.Labels[podNameLabel], Container: c.Labels[containerNameLabel],
			Attempt: c.Metadata.GetAttempt(), State: c.State.String(), ExitCode: c.ExitCode, StartedAt: c.StartedAt, Address: address,
		})
	}
	return list
}

// exit ends containers as their own processes would, and returns how many.
func (m *machine) exit(namespace, pod, name string, code int32) (n int) {
	m.RuntimeService.Lock()
	defer m.RuntimeService.Unlock()
	matches := func(want, got string) bool { return want == "" || want == got }
	for id, c := range m.RuntimeService.Containers {
		if c.State == runtimev1.ContainerState_CONTAINER_RUNNING && matches(namespace, c.Labels[podNamespaceLabel]) &&
			matches(pod, c.Labels[podNameLabel]) && matches(name, c.Labels[containerNameLabel]) {
			c.State, c.ExitCode, c.FinishedAt = runtimev1.ContainerState_CONTAINER_EXITED, code, time.Now().UnixNano()
			c.Reason = reason(code)
			m.programs.kill(id)
			n++
		}
	}
	return n
}
