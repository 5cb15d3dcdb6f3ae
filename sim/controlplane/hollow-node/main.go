// Command hollow-node is the kubelet and the container runtime of a machine that is not there: the real kubelet's code,
// by way of kubemark's packages, over a runtime whose containers are entries in a table.
//
//	hollow-node runtime   answers the kubelet as a container runtime does, and has for each pod a listener that is alive
//	                      as long as
//	                      this process is: the machine's containers, which outlive a kubelet that is restarted
//	hollow-node kubelet   the kubelet
//
// Both are processes of their own, so that either can be killed. The kubelet talks to the server in its kubeconfig and
// to nobody else: it looks up no name. What is fake beside the runtime (cAdvisor, container manager, mounts, probes) is
// fake as kubemark has it.
//
// A pod has an address in 10.0.0.0/8, since an EndpointSlice takes no loopback address, and its listener the same one
// in 127.0.0.0/8, since nobody may put addresses on a real interface: who calls a pod dials 127.x.y.z for 10.x.y.z.
// Containers of images that --program names are processes, which listen at that address too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The kubelet would look its node's name up, at a name server that has nothing to do with this cluster.
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("a hollow node looks up no names")
	}}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hollow-node:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, []string) error{"runtime": runRuntime, "kubelet": runKubelet}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("want runtime or kubelet, then flags: see --help of either")
	}
	return commands[args[0]](ctx, args[1:])
}

// parse reads flags and insists on those that are required.
func parse(fs *flag.FlagSet, args []string, required ...string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	for _, name := range required {
		if fs.Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s is required", name)
		}
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("argument %q: want flags only", fs.Arg(0))
	}
	return nil
}
