package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

func runRuntime(ctx context.Context, args []string) error {
	var endpoint, control, first, policy, file string
	var pods, port int
	own := newPrograms()
	fs := flag.NewFlagSet("hollow-node runtime", flag.ContinueOnError)
	fs.StringVar(&endpoint, "endpoint", "", "socket to answer the kubelet at: unix:///…")
	fs.StringVar(&control, "control-address", "", "host:port of /healthz and of what steers containers")
	fs.StringVar(&first, "first-address", "", "127.x.y.z, the first of as many addresses as pods")
	fs.StringVar(&policy, "addresses", sameAddresses, "that pods get when the machine starts again: same, other, swapped")
	fs.StringVar(&file, "address-file", "", "where the machine keeps which pod had which address")
	fs.IntVar(&pods, "pods", 16, "that may have an address")
	fs.IntVar(&port, "port", 8080, "that every pod listens on")
	fs.Var(own, "program", "image=path: what containers of an image run, with "+loopbackEnv+" in their environment; "+
		"containers of other images run nothing")
	if err := parse(fs, args, "endpoint", "control-address", "first-address"); err != nil {
		return err
	}
	book, err := newAddresses(first, pods, policy, file)
	if err != nil {
		return err
	}
	path := strings.TrimPrefix(endpoint, "unix://")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	socket, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	steering, err := new(net.ListenConfig).Listen(ctx, "tcp", control)
	if err != nil {
		return fmt.Errorf("listen for control: %w", err)
	}
	m := newMachine(book, port, own)
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, m)
	runtimev1.RegisterImageServiceServer(server, m)
	steer := &http.Server{Handler: m.steering(), ReadHeaderTimeout: time.Second}
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(socket) }()
	go func() { ended <- steer.Serve(steering) }()
	select {
	case <-ctx.Done():
		return nil // the process ends, and all sockets with it
	case err := <-ended:
		return err
	}
}

// machine is a container runtime whose sandboxes have addresses and listeners, and whose containers may be processes.
// What it holds is kubemark's fake.
type machine struct {
	*fake.RemoteRuntime
	book     *addresses
	port     int
	programs *programs
}

func newMachine(book *addresses, port int, p *programs) *machine {
	m := &machine{RemoteRuntime: fake.NewFakeRemoteRuntime(), book: book, port: port, programs: p}
	m.ImageService.SetFakeImageSize(1) // the kubelet takes no image of no size
	m.RuntimeService.FakeStatus = &runtimev1.RuntimeStatus{Conditions: []*runtimev1.RuntimeCondition{
		{Type: runtimev1.RuntimeReady, Status: true}, {Type: runtimev1.NetworkReady, Status: true},
	}}
	return m
}

// RunPodSandbox gives the sandbox an address and listens there.
func (m *machine) RunPodSandbox(ctx context.Context, req *runtimev1.RunPodSandboxRequest) (
	*runtimev1.RunPodSandboxResponse, error) {
	resp, err := m.RemoteRuntime.RunPodSandbox(ctx, req)
	if err != nil {
		return nil, err
	}
	id := resp.PodSandboxId
	pod := req.GetConfig().GetMetadata()
	ip, err := m.book.take(ctx, id, pod.GetNamespace()+"/"+pod.GetName(), m.port, m.answer(id, pod.GetName()))
	if err != nil {
		_ = m.RuntimeService.RemovePodSandbox(ctx, id)
		return nil, err
	}
	m.RuntimeService.Lock()
	defer m.RuntimeService.Unlock()
	if s := m.RuntimeService.Sandboxes[id]; s != nil {
		s.Network = &runtimev1.PodSandboxNetworkStatus{Ip: ip}
	}
	return resp, nil
}

// StopPodSandbox ends the listener.
func (m *machine) StopPodSandbox(ctx context.Context, req *runtimev1.StopPodSandboxRequest) (
	*runtimev1.StopPodSandboxResponse, error) {
	m.book.release(req.PodSandboxId)
	return m.RemoteRuntime.StopPodSandbox(ctx, req)
}

// RemovePodSandbox ends the listener of one that was not stopped.
func (m *machine) RemovePodSandbox(ctx context.Context, req *runtimev1.RemovePodSandboxRequest) (
	*runtimev1.RemovePodSandboxResponse, error) {
	m.book.release(req.PodSandboxId)
	return m.RemoteRuntime.RemovePodSandbox(ctx, req)
}

// answer is the application in a pod: it tells its name while one of its containers runs.
func (m *machine) answer(id, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !m.runs(id) {
			http.Error(w, "no container of "+name+" runs", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, name)
	}
}

func (m *machine) runs(sandbox string) bool {
	m.RuntimeService.Lock()
	defer m.RuntimeService.Unlock()
	for _, c := range m.RuntimeService.Containers {
		if c.SandboxID == sandbox && c.State == runtimev1.ContainerState_CONTAINER_RUNNING {
			return true
		}
	}
	return false
}
