package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/kind"
)

// LoadApp builds AppImage from kind/app and gives it to all nodes of pools, and its command to the nodes themselves.
func (s *kindSite) LoadApp(ctx context.Context) error {
	dir, err := s.spawner.Scratch("app")
	if err != nil {
		return err
	}
	app, err := s.run.BuildApp(ctx, s.spawner, dir, s.progress)
	if err == nil {
		err = s.each(ctx, func(ctx context.Context, m *machine) error {
			if m == s.control {
				return nil
			}
			return app.Load(ctx, m.Container, AppImage)
		})
	}
	if err != nil {
		return fmt.Errorf("load the image of the pods: %w", err)
	}
	return nil
}

// Call implements Callers. The node's kube-proxy leads each call to a pod.
func (s *kindSite) Call(ctx context.Context, node, url string, every, patience time.Duration, told func(error)) error {
	m := s.byNode[node]
	if m == nil {
		return fmt.Errorf("there is no node %q", node)
	}
	return kind.Call(ctx, m.Container, url, every, patience, told)
}
