package runtime

import (
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/node"
)

// addControllers prepares the stock controllers.
func (s *localSite) addControllers() error {
	manager, err := s.cloud.ControllerManager(s.topology.timers())
	if err != nil {
		return err
	}
	scheduler, err := s.cloud.Scheduler()
	if err != nil {
		return err
	}
	s.addCommand(ControllerManager, manager)
	s.addCommand(Scheduler, scheduler)
	return nil
}

func (s *localSite) addCommand(id PartID, c cloud.Command) {
	l := node.Launch{Spawner: s.spawner, Name: c.Name, Path: c.Path, Dir: c.Dir, LogFile: c.LogFile}
	s.addPart(id, node.NewCommand(l, c.Args, c.URL, c.Transport))
}
