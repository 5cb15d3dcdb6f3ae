package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

// podCommands are weir logs, weir exec and weir port-forward.
func podCommands() []*cobra.Command {
	return []*cobra.Command{
		commands.New("logs POD", "show the log of a pod of a pool, over weir-gate", 1, logs),
		commands.New("exec POD -- COMMAND...", "run a command in a pod of a pool, over weir-gate", commands.Any, execs),
		commands.New("port-forward POD [LOCAL:]REMOTE...", "forward ports of this machine to a pod of a pool, over weir-gate",
			commands.Any, forwards),
	}
}

func logs(fs *pflag.FlagSet) commands.Run {
	o := corev1.PodLogOptions{}
	fs.StringVarP(&o.Container, "container", "c", "",
		"container; none: the only one, or that of the annotation for kubectl")
	fs.BoolVarP(&o.Follow, "follow", "f", false, "go on with what is written from now on")
	fs.BoolVarP(&o.Previous, "previous", "p", false, "the log of the container before it was started again")
	fs.BoolVar(&o.Timestamps, "timestamps", false, "the time before each line")
	tail := fs.Int64("tail", -1, "last lines only; -1: all")
	since := fs.Duration("since", 0, "what is younger only, for example 5m; 0: all")
	f := bind(fs)
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		switch {
		case *tail < -1:
			return cli.Usage("--tail", *tail, "-1 or more")
		case *since != 0 && *since < time.Second:
			return cli.Usage("--since", *since, "1s or more")
		}
		if *tail >= 0 {
			o.TailLines = tail
		}
		if *since > 0 {
			o.SinceSeconds = new(int64(*since / time.Second))
		}
		t, err := f.find(ctx, args[0])
		if err != nil {
			return err
		}
		o.Container = t.containerOf(o.Container)
		log, err := t.client.CoreV1().Pods(t.pod.Namespace).GetLogs(t.pod.Name, &o).Stream(ctx)
		if err != nil {
			return t.why(err)
		}
		defer log.Close()
		if _, err = io.Copy(stdout, log); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the log broke off: %w; call it again, with --since", err)
		}
		return nil
	}
}

func execs(fs *pflag.FlagSet) commands.Run {
	o := corev1.PodExecOptions{Stdout: true}
	fs.StringVarP(&o.Container, "container", "c", "",
		"container; none: the only one, or that of the annotation for kubectl")
	fs.BoolVarP(&o.Stdin, "stdin", "i", false, "pass standard input on")
	fs.BoolVarP(&o.TTY, "tty", "t", false, "with a terminal; needs --stdin, and a terminal here")
	f := bind(fs)
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		if fs.ArgsLenAtDash() != 1 || len(args) < 2 {
			return cli.Usage("arguments", strings.Join(args, " "), "POD -- COMMAND...")
		}
		if o.TTY && !o.Stdin {
			return cli.Usage("--tty", true, "with --stdin")
		}
		t, err := f.find(ctx, args[0])
		if err != nil {
			return err
		}
		o.Container, o.Command, o.Stderr = t.containerOf(o.Container), args[1:], !o.TTY
		return t.run(ctx, &o, os.Stdin, stdout, stderr)
	}
}

// run runs a command in the pod, until it ends.
func (t *target) run(ctx context.Context, o *corev1.PodExecOptions, in *os.File, stdout, stderr io.Writer) error {
	at := t.url("exec", func(r *rest.Request) { r.VersionedParams(o, scheme.ParameterCodec) })
	old, err := remotecommand.NewSPDYExecutor(t.config, http.MethodPost, at)
	if err != nil {
		return err
	}
	e, err := remotecommand.NewWebSocketExecutor(t.config, http.MethodGet, at.String())
	if err != nil {
		return err
	}
	if e, err = remotecommand.NewFallbackExecutor(e, old, otherWay); err != nil {
		return err
	}
	s := remotecommand.StreamOptions{Stdout: stdout, Tty: o.TTY}
	if o.Stdin {
		s.Stdin = in
	}
	if o.Stderr {
		s.Stderr = stderr
	}
	if o.TTY {
		term, err := openTerminal(in)
		if err != nil {
			return err
		}
		defer term.close()
		s.TerminalSizeQueue = term
	}
	err = e.StreamWithContext(ctx, s)
	var exit utilexec.CodeExitError
	switch {
	case errors.As(err, &exit):
		return &cli.ExitError{Code: exit.Code}
	case ctx.Err() != nil:
		return &cli.ExitError{Code: interrupted}
	}
	return t.why(err)
}

// interrupted is the exit code of what a signal ends.
const interrupted = 130

// otherWay reports whether SPDY may do where a websocket does not.
func otherWay(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

func forwards(fs *pflag.FlagSet) commands.Run {
	addresses := fs.StringSlice("address", []string{"localhost"},
		"IP addresses of this machine to listen at, or localhost")
	f := bind(fs)
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		if len(args) < 2 {
			return cli.Usage("arguments", strings.Join(args, " "), "POD [LOCAL:]REMOTE...")
		}
		if err := checkPorts(ctx, *addresses, args[1:]); err != nil {
			return err
		}
		t, err := f.find(ctx, args[0])
		if err != nil {
			return err
		}
		return t.forward(ctx, *addresses, args[1:], make(chan struct{}), stdout, stderr)
	}
}

// checkPorts looks at addresses and ports before the cluster is asked.
func checkPorts(ctx context.Context, addresses, ports []string) error {
	for _, a := range addresses {
		if a != "localhost" && net.ParseIP(a) == nil {
			return cli.Usage("--address", a, "an IP address of this machine, or localhost")
		}
	}
	_, err := portforward.NewOnAddressesForStreamingWithContext(ctx, nil, addresses, ports, nil, nil, nil)
	if err != nil {
		return cli.Usage("arguments", strings.Join(ports, " "), "POD [LOCAL:]REMOTE...; "+err.Error())
	}
	return nil
}

// forward forwards ports until ctx ends. ready is closed when it listens.
func (t *target) forward(ctx context.Context, addresses, ports []string, ready chan struct{}, stdout, stderr io.Writer,
) error {
	at := t.url("portforward", func(*rest.Request) {})
	tr, up, err := spdy.RoundTripperFor(t.config)
	if err != nil {
		return err
	}
	old := spdy.NewDialerForStreaming(up, &http.Client{Transport: tr}, http.MethodPost, at)
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, t.config)
	if err != nil {
		return err
	}
	dialer = portforward.NewFallbackDialerForStreaming(dialer, old, otherWay)
	p, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, addresses, ports, ready, stdout, stderr)
	if err != nil {
		return err
	}
	if err := p.ForwardPorts(); ctx.Err() == nil {
		return t.why(err)
	}
	return nil
}
