package runtime

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
)

// makeCoordinator has the image by which coordinators run.
func (s *kindSite) makeCoordinator(ctx context.Context) error {
	dir, err := s.spawner.Scratch("release")
	if err == nil {
		s.coordinates, err = s.run.Released(ctx, s.spawner, dir, parts.CoordinatorCommand, s.progress)
	}
	return err
}

// coordinator implements ground.
func (s *kindSite) coordinator(l parts.Launch, c parts.CoordinatorConfig, viewer http.RoundTripper) (Part, error) {
	config, err := c.Write(l.Dir)
	if err != nil {
		return nil, err
	}
	name := s.run.ID + "-" + strings.ReplaceAll(strings.TrimPrefix(l.LogFile, s.logDir+string(filepath.Separator)), ".log",
		"")
	m := &machine{
		Container: docker.Container(name), node: name, network: s.run.Network, address: c.BindAddress, fixed: true,
	}
	box := coordinatorLife{
		machine: m, image: s.coordinates, labels: s.run.Labels(), config: config, dir: l.Dir, log: l.LogFile, data: c.DataDir,
		spawner: s.spawner,
	}
	return &kindPart{
		prober: parts.CoordinatorProbe(l.Name, c, viewer), life: box, machine: m, name: l.Name,
		command: parts.CoordinatorCommand, log: l.LogFile,
	}, nil
}

// coordinatorLife is a container of a release's image, whose process runs as the user that runs the testbed: its files
// are of that.
type coordinatorLife struct {
	*machine
	image   string
	labels  map[string]string
	spawner *proc.Spawner

	config, dir, data, log string
}

// begin stays attached to it, for its log.
func (c coordinatorLife) begin(ctx context.Context) error {
	if _, err := c.ID(ctx); docker.Gone(err) {
		if err := c.create(ctx); err != nil {
			return err
		}
	}
	path, err := exec.LookPath("docker")
	if err == nil {
		_, err = c.spawner.Start(proc.Spec{
			Name: "docker start " + c.node, Path: path, Args: []string{"start", "--attach", string(c.Container)}, LogFile: c.log,
		})
	}
	return err
}

func (c coordinatorLife) create(ctx context.Context) error {
	args := []string{
		"create", "--name", string(c.Container), "--hostname", string(c.Container), "--network", c.network.Name, "--ip",
		c.address,
		"--user", strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid()), "--stop-timeout", "15", "--volume",
		c.dir + ":" + c.dir,
	}
	for k, v := range c.labels {
		args = append(args, "--label", k+"="+v)
	}
	_, err := docker.Run(ctx, append(args, c.image, "--config="+c.config)...)
	return err
}

func (c coordinatorLife) end(ctx context.Context) error { return c.Container.Stop(ctx) }

func (c coordinatorLife) wipe(context.Context) error {
	entries, err := os.ReadDir(c.data)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(c.data, e.Name())))
	}
	return errors.Join(errs...)
}
