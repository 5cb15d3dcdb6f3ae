package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// chartImages are the images of the chart, by the values that name them.
var chartImages = []string{"manager", "installer", "coordinator", "gate"}

// devLoad gives a cluster of kind the images of this checkout, and says how the chart is installed with them. The chart
// of a release names images by digests. Images that were loaded have none, only tags.
func devLoad(fs *pflag.FlagSet) commands.Run {
	cluster := fs.String("cluster", "kind", "name of the cluster, as kind get clusters prints it")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) (err error) {
		root, err := gobuild.Root("")
		if err != nil {
			return err
		}
		if err := docker.Ping(ctx); err != nil {
			return err
		}
		switch clusters, err := kind.Clusters(); {
		case err != nil:
			return err
		case len(clusters) == 0:
			return cli.Usage("--cluster", *cluster, "a cluster of kind, and there is none: kind create cluster --name "+*cluster)
		case !slices.Contains(clusters, *cluster):
			return cli.Usage("--cluster", *cluster, "a cluster of kind: "+strings.Join(clusters, ", "))
		}
		version, err := repository{root}.git(ctx, "describe", "--tags", "--always", "--dirty")
		if err != nil { // as in sources without their history
			version = "devel"
		}
		s, err := proc.New()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		dir := filepath.Join(root, "bin", "dev")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		var names []string
		for _, image := range chartImages {
			names = append(names, "weir-"+image)
		}
		made, err := kind.Load(ctx, s, dir, *cluster, version, names, func(m string) { fmt.Fprintln(stderr, m) })
		if err != nil {
			return err
		}
		values := filepath.Join(dir, "values.yaml")
		if err := os.WriteFile(values, []byte(devValues(made)), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "helm upgrade --install weir %s -n weir-system --create-namespace --wait "+
			"--kube-context kind-%s -f %s\n", fromHere(filepath.Join(root, "charts", "weir")), *cluster, fromHere(values))
		return nil
	}
}

// devValues has the chart name images by their tags.
func devValues(made []kind.Made) string {
	var b strings.Builder
	b.WriteString("# Made by weir dev load.\n")
	for _, image := range chartImages {
		for _, m := range made {
			if strings.HasSuffix(m.Repository, "/weir-"+image) {
				fmt.Fprintf(&b, "%s: {image: {repository: %s, tag: %q, digest: \"\"}}\n", image, m.Repository, m.Tag)
			}
		}
	}
	return b.String()
}

// fromHere is a path as it is typed in the working directory.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(short, "..") {
		return path
	}
	return short
}
