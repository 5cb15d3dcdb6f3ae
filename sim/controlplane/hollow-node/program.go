package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// loopbackEnv tells a program where its pod's listeners have to be. Its pod has the same address in 10.0.0.0/8.
const loopbackEnv = "HOLLOW_ADDRESS"

// programs are the containers that are processes: those of images for which there is a program. They end with this
// process, as all containers of a machine without power do: its group is killed.
type programs struct {
	paths map[string]string // by image

	mu      sync.Mutex
	made    map[string]*runtimev1.CreateContainerRequest // by container
	running map[string]*exec.Cmd
}

// Set implements flag.Value.
func (p *programs) Set(s string) error {
	image, path, ok := strings.Cut(s, "=")
	if !ok || image == "" || path == "" {
		return fmt.Errorf("%q: want image=path", s)
	}
	p.paths[image] = path
	return nil
}

// String implements flag.Value.
func (*programs) String() string { return "" }

func newPrograms() *programs {
	return &programs{
		paths: map[string]string{}, made: map[string]*runtimev1.CreateContainerRequest{}, running: map[string]*exec.Cmd{},
	}
}

// start starts the program of a container, if there is one. ended is told how it ended by itself.
func (p *programs) start(container, loopback string, ended func(code int32)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	config := p.made[container].GetConfig()
	path := p.paths[image(config)]
	if path == "" {
		return nil
	}
	cmd := exec.Command(path, config.GetArgs()...) //nolint:noctx // it lives as long as its container
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	for _, e := range config.GetEnvs() {
		cmd.Env = append(cmd.Env, e.GetKey()+"="+string(e.GetValue()))
	}
	cmd.Env = append(cmd.Env, loopbackEnv+"="+loopback)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the program of container %s: %w", container, err)
	}
	p.running[container] = cmd
	go func() {
		var failed *exec.ExitError
		code := int32(0)
		if err := cmd.Wait(); errors.As(err, &failed) {
			code = int32(failed.ExitCode())
		}
		p.mu.Lock()
		itself := p.running[container] == cmd
		delete(p.running, container)
		p.mu.Unlock()
		if itself {
			ended(code)
		}
	}()
	return nil
}

// kill ends the program of a container, if one runs.
func (p *programs) kill(container string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cmd := p.running[container]; cmd != nil {
		delete(p.running, container)
		_ = cmd.Process.Kill()
	}
}

// image is what the pod's author wrote.
func image(c *runtimev1.ContainerConfig) string {
	if name := c.GetImage().GetUserSpecifiedImage(); name != "" {
		return name
	}
	return c.GetImage().GetImage()
}

// CreateContainer notes what a container is to run.
func (m *machine) CreateContainer(ctx context.Context, req *runtimev1.CreateContainerRequest) (
	*runtimev1.CreateContainerResponse, error) {
	resp, err := m.RemoteRuntime.CreateContainer(ctx, req)
	if err == nil {
		m.programs.mu.Lock()
		defer m.programs.mu.Unlock()
		m.programs.made[resp.ContainerId] = req
	}
	return resp, err
}

// StartContainer starts the program of a container, if there is one.
func (m *machine) StartContainer(ctx context.Context, req *runtimev1.StartContainerRequest) (
	*runtimev1.StartContainerResponse, error) {
	resp, err := m.RemoteRuntime.StartContainer(ctx, req)
	if err != nil {
		return nil, err
	}
	id := req.ContainerId
	return resp, m.programs.start(id, m.loopback(id), func(code int32) { m.ended(id, code) })
}

// StopContainer ends the program of a container.
func (m *machine) StopContainer(ctx context.Context, req *runtimev1.StopContainerRequest) (
	*runtimev1.StopContainerResponse, error) {
	m.programs.kill(req.ContainerId)
	return m.RemoteRuntime.StopContainer(ctx, req)
}

// RemoveContainer ends the program of one that was not stopped, and forgets it.
func (m *machine) RemoveContainer(ctx context.Context, req *runtimev1.RemoveContainerRequest) (
	*runtimev1.RemoveContainerResponse, error) {
	m.programs.kill(req.ContainerId)
	m.programs.mu.Lock()
	delete(m.programs.made, req.ContainerId)
	m.programs.mu.Unlock()
	return m.RemoteRuntime.RemoveContainer(ctx, req)
}

// loopback is the loopback address of the pod of a container.
func (m *machine) loopback(container string) string {
	m.RuntimeService.Lock()
	defer m.RuntimeService.Unlock()
	c := m.RuntimeService.Containers[container]
	if c == nil || m.RuntimeService.Sandboxes[c.SandboxID] == nil {
		return ""
	}
	return "127." + strings.TrimPrefix(m.RuntimeService.Sandboxes[c.SandboxID].Network.GetIp(), "10.")
}

// ended notes that a container's program ended by itself.
func (m *machine) ended(container string, code int32) {
	m.RuntimeService.Lock()
	defer m.RuntimeService.Unlock()
	c := m.RuntimeService.Containers[container]
	if c == nil || c.State != runtimev1.ContainerState_CONTAINER_RUNNING {
		return
	}
	c.State, c.ExitCode, c.FinishedAt = runtimev1.ContainerState_CONTAINER_EXITED, code, time.Now().UnixNano()
	c.Reason = reason(code)
}

func reason(code int32) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}
