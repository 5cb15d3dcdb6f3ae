package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// Names of Weir's commands.
const (
	HubCommand         = "weir-hub"
	CoordinatorCommand = "weir-coordinator"
	ManagerCommand     = "weir-manager"
)

// Binaries maps Weir's commands to their paths.
type Binaries map[string]string

// BuiltEnv names a folder of commands that whoever sets it has just built from the sources. Linking them takes some ten seconds of a
// processor, and tests start many sites.
const BuiltEnv = "WEIR_BUILT"

// Find returns the asked commands: the given paths where there are any, or those in the folder of BuiltEnv, after a look whether they can
// be run. The others are built from the repository that the working directory is in, into the scratch directory of s: a run always tests
// the sources as they are, and Go's build cache makes that quick.
func Find(ctx context.Context, s *proc.Spawner, given Binaries, progress func(string), commands ...string) (Binaries, error) {
	found := Binaries{}
	var packages []string
	built := os.Getenv(BuiltEnv)
	for _, command := range commands {
		path := given[command]
		if path == "" && built != "" {
			path = filepath.Join(built, command)
		}
		if path == "" {
			packages = append(packages, "./impl/cmd/"+command)
			continue
		}
		if info, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("find %s: %w", command, err)
		} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return nil, fmt.Errorf("find %s: %s is not a program", command, path)
		}
		found[command] = path
	}
	if len(packages) == 0 {
		return found, nil
	}
	root, err := gobuild.Root("")
	if err != nil {
		return nil, err
	}
	dir, err := s.Scratch("bin")
	if err != nil {
		return nil, err
	}
	// The flags are those of the Makefile.
	spec := gobuild.Spec{Name: "weir", Dir: root, Packages: packages, Output: dir, LDFlags: "-s -w"}
	if err := gobuild.Run(ctx, s, spec, progress); err != nil {
		return nil, err
	}
	for _, command := range commands {
		if found[command] == "" {
			found[command] = filepath.Join(dir, command)
		}
	}
	return found, nil
}
