package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	evidencePatience = 2 * time.Minute
	waitPatience     = 5 * time.Minute
	waitPoll         = 500 * time.Millisecond
	waitNotice       = 5 * time.Second
)

// whatToKeep of the cluster, when a run fails.
const whatToKeep = "nodes,pods,services,endpointslices,deployments,daemonsets,configmaps,events,leases"

// SaveEvidence implements Evidence: the logs of all nodes and pods, as `kind export logs` has them, all objects, and
// what was installed in the nodes.
func (s *kindSite) SaveEvidence(ctx context.Context) error {
	if s.run == nil || s.control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, evidencePatience)
	defer cancel()
	dir := filepath.Join(s.logDir, "kind")
	s.progress("saving logs and manifests of all nodes in " + dir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	_ = s.run.CollectLogs(dir) // fails where a node is off; the others' are there
	keep := func(name string, m *machine, command ...string) error {
		out, err := m.Exec(ctx, command...)
		if err != nil { // of a node that is off, or a cluster that never was: that is evidence too
			out += "\n" + err.Error()
		}
		return os.WriteFile(filepath.Join(dir, name), []byte(out+"\n"), 0o644)
	}
	errs := []error{
		keep("objects.yaml", s.control, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", whatToKeep,
			"--all-namespaces", "-o", "yaml"),
	}
	for _, m := range s.workers() {
		errs = append(errs,
			keep(m.node+".txt", m, "sh", "-c", "for f in "+doorScript+" "+unitFolder+"weir-*.service /etc/weir/hub.yaml "+
				hubFlags+"; do echo \"# $f\"; cat \"$f\"; done; nft list ruleset"))
	}
	for id, part := range s.parts {
		if p, ok := part.(*kindPart); ok && id.Kind() == "coordinator" {
			if c, ok := p.life.(coordinatorLife); ok {
				data, err := os.ReadFile(c.config)
				errs = append(errs, err, os.WriteFile(filepath.Join(dir, p.machine.node+".yaml"), data, 0o644))
			}
		}
	}
	return errors.Join(errs...)
}

// wait waits for something in the cluster, with progress.
func (s *kindSite) wait(ctx context.Context, what string, ok func() (done bool, state string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitPatience)
	defer cancel()
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	told := time.Now()
	for {
		done, state, err := ok()
		if done {
			return nil
		}
		if time.Since(told) > waitNotice {
			told = time.Now()
			s.progress("waiting until " + what + ": " + state)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %s", what, errors.Join(ctx.Err(), err), state)
		}
	}
}
