package autonomy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weir-edge/weir/sim/runtime"
)

const runningState = "CONTAINER_RUNNING"

// container is one line of what a machine says of its containers.
type container struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Attempt   int32  `json:"attempt"`
	State     string `json:"state"`
	ExitCode  int32  `json:"exitCode"`
	StartedAt int64  `json:"startedAt"` // ns since 1970
	Address   string `json:"address"`   // of its pod, as the cluster knows it
}

// latest are the newest containers of each pod by its name.
func latest(all []container) map[string]container {
	of := map[string]container{}
	for _, c := range all {
		if have, ok := of[c.Pod]; !ok || c.Attempt >= have.Attempt {
			of[c.Pod] = c
		}
	}
	return of
}

// containers asks a machine for what is on it.
func containers(ctx context.Context, m runtime.Machine) (all []container, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Containers+"/containers", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return all, json.NewDecoder(resp.Body).Decode(&all)
}

// exit ends the containers of a pod on a machine.
func exit(ctx context.Context, m runtime.Machine, pod string, code int) error {
	q := url.Values{"pod": {pod}, "code": {strconv.Itoa(code)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Containers+"/exit?"+q.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("end the containers of %s: %s", pod, resp.Status)
	}
	return nil
}
