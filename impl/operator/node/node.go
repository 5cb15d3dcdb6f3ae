package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install"
)

// Command is weir node.
func Command() *cobra.Command {
	return commands.Group("node", "lead a machine to its hub, and look after machines of pools",
		commands.New("join --pool POOL", "lead the kubelet of this machine to a hub", 0, join),
		commands.New("leave", "make this machine what it was before", 0, leave),
		commands.New("status", "report whether the kubelet of this machine calls its hub", 0, status),
		commands.New("install --pool POOL",
			"what a Job of weir-manager runs on a node: join, or leave, as a unit of the machine", 0, installs),
		commands.New("revoke NAME...",
			"delete Nodes of machines that are lost or stolen, and revoke what they had; or confirm that they were deleted",
			commands.Any, each(revoke)),
		commands.New("restore NAME...", "make Nodes again that were deleted by mistake", commands.Any, each(restore)),
		commands.New("certificate", "list the certificates of this machine: when each ends, and who signed it", 0,
			certificate),
	)
}

func join(fs *pflag.FlagSet) commands.Run {
	var o install.Config
	fs.StringVar(&o.Pool, "pool", "", "pool that the Node is in, by its label "+contract.NodePoolLabel+"; required")
	fs.StringVar(&o.Token, "token", "",
		"bootstrap token of this node, by which its hub asks for its certificate in the pool; without it, it asks "+
			"as its node")
	fs.StringSliceVar(&o.Hashes, "discovery-token-ca-cert-hash", nil,
		"sha256:… of the public key of the cluster's authority, which the kubelet's kubeconfig has to have; repeatable; "+
			"without it, that is trusted")
	fs.StringVar(&o.Hub, "hub-binary", "",
		"the program weir-hub that is installed; default: the one beside this program, or in PATH")
	fs.StringVar(&o.Kubeconfig, "kubelet-kubeconfig", "", "the kubelet's kubeconfig; default: the one that its unit names")
	fs.StringVar(&o.ClientCA, "client-ca-file", "",
		"PEM file of the authority that signs the kubelet's certificate; default: that of its kubeconfig")
	fs.BoolVar(&o.Coordinator, "coordinator", true,
		"weir-manager may run the pool's coordinator on this node: the hub gets the certificates for it when it "+
			"hears of that")
	fs.BoolVar(&o.Pods, "pods", true, "pods that start when they trust the hub are told to call it, at "+
		contract.PodsAddress+", which the machine gets; false: kubelet and kube-proxy only")
	images := fs.Bool("images", true, "containerd asks the hub for images first, where its config_path allows that, so "+
		"that they cross the link once; false: it asks registries, and later joins without the flag leave it so")
	fs.StringVar(&o.PoolAddress, "pool-address", "",
		"as --pool-address of weir-hub: where the pool reaches this hub, if that is not the node's address")
	fs.IntVar(&o.Ports.Secure, "secure-port", contract.HubSecurePort, "as --secure-port of weir-hub")
	fs.IntVar(&o.Ports.Health, "health-port", contract.HubHealthPort, "as --health-port of weir-hub")
	fs.IntVar(&o.Ports.Pool, "pool-port", contract.HubPoolPort, "as --pool-port of weir-hub")
	fs.IntVar(&o.Ports.Images, "images-port", contract.HubImagesPort, "as --images-port of weir-hub")
	fs.DurationVar(&o.Timeout, "timeout", 2*time.Minute,
		"how long the hub may take to serve, and then the kubelet to be heard through it, before all is undone")
	dry := fs.Bool("dry-run", false, "look whether this node could join, and change nothing")
	o.Host.Root = "/"
	r := root(fs)
	return func(ctx context.Context, _ []string, _, stderr io.Writer) error {
		o.Out, o.Host.Root = stderr, *r
		if fs.Changed("images") {
			o.Images = images
		}
		if o.Hub == "" {
			var err error
			if o.Hub, err = findHub(); err != nil {
				return err
			}
		}
		i, err := install.New(o)
		if err != nil {
			return err
		}
		if *dry {
			return i.Check(ctx)
		}
		return i.Join(ctx)
	}
}

func leave(fs *pflag.FlagSet) commands.Run {
	timeout := fs.Duration("timeout", 2*time.Minute,
		"how long pods that call the hub may take to restart, and those to end that nothing would restart")
	abandon := fs.Bool("abandon-pods", false,
		"leave although there are pods that call the hub and that nothing would restart: they lose the API")
	r := root(fs)
	return func(ctx context.Context, _ []string, _, stderr io.Writer) error {
		i, err := install.New(install.Config{Out: stderr, Timeout: *timeout, Abandon: *abandon, Host: install.Host{Root: *r}})
		if err != nil {
			return err
		}
		return i.Leave(ctx)
	}
}

// errUnwell is the answer of weir node status where something is wrong.
var errUnwell = errors.New("the kubelet of this machine is not heard through a hub")

func status(fs *pflag.FlagSet) commands.Run {
	form := fs.StringP("output", "o", "text", "text or json")
	r := root(fs)
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		if *form != "text" && *form != "json" {
			return cli.Usage("--output", *form, "text or json")
		}
		i, err := install.New(install.Config{Host: install.Host{Root: *r}})
		if err != nil {
			return err
		}
		s, err := i.Status(ctx)
		if err != nil {
			return err
		}
		switch written, err := commands.Write(stdout, *form, s); {
		case err != nil:
			return err
		case !written:
			fmt.Fprint(stdout, s)
		}
		if !s.Well() {
			return errUnwell
		}
		return nil
	}
}
