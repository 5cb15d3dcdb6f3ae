package parts

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// Names of Weir's commands.
const (
	HubCommand         = "weir-hub"
	CoordinatorCommand = "weir-coordinator"
	ManagerCommand     = "weir-manager"
	GateCommand        = "weir-gate"
	OperatorCommand    = "kubectl-weir"
)

// Binaries maps Weir's commands to their paths.
type Binaries map[string]string

// BuiltEnv names a folder of commands that whoever sets it has just built from the sources. Linking them takes some ten
// seconds of a processor, and tests start many sites.
const BuiltEnv = "WEIR_BUILT"

// Find returns the asked commands: the given paths where there are any, or those in the folder of BuiltEnv, after a
// look whether they can be run. The others are built from the repository that the working directory is in, into the
// scratch directory of s: a run always tests the sources as they are, and Go's build cache makes that quick.
func Find(ctx context.Context, s *proc.Spawner, given Binaries, progress func(string), commands ...string) (
	Binaries, error) {
	found := Binaries{}
	var packages []string
	built := os.Getenv(BuiltEnv)
	for _, command := range commands {
		file := given[command]
		if file == "" && built != "" {
			file = filepath.Join(built, command)
		}
		if file == "" {
			packages = append(packages, "./impl/cmd/"+command)
			continue
		}
		if info, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("find %s: %w", command, err)
		} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return nil, fmt.Errorf("find %s: %s is not a program", command, file)
		}
		found[command] = file
	}
	if len(packages) == 0 {
		return found, nil
	}
	compiled, err := compile(ctx, s, gobuild.Spec{Name: "weir"}, "bin", progress, packages...)
	if err != nil {
		return nil, err
	}
	for _, command := range commands {
		if found[command] == "" {
			found[command] = compiled[command]
		}
	}
	return found, nil
}

// FindNested builds a command of a nested module of the repository that the working directory is in, into the scratch
// directory of s. Both folders are relative: of the module to the repository, of the command to the module.
func FindNested(ctx context.Context, s *proc.Spawner, progress func(string), module, command string) (string, error) {
	name, output := path.Base(path.Join(module, command)), path.Join("nested", module)
	_, err := compile(ctx, s, gobuild.Spec{Name: name, Dir: module}, output, progress, "./"+command)
	if err != nil {
		return "", err
	}
	dir, err := s.Scratch(output)
	return filepath.Join(dir, name), err
}

// compile builds commands from the repository that the working directory is in, into a scratch directory. The folder of
// the module is below its root.
func compile(ctx context.Context, s *proc.Spawner, spec gobuild.Spec, folder string, progress func(string),
	packages ...string) (Binaries, error) {
	root, err := gobuild.Root("")
	if err != nil {
		return nil, err
	}
	spec.Dir = filepath.Join(root, spec.Dir)
	if spec.Output, err = s.Scratch(folder); err != nil {
		return nil, err
	}
	spec.Packages, spec.LDFlags = packages, "-s -w" // as in the Makefile
	if err := gobuild.Run(ctx, s, spec, progress); err != nil {
		return nil, err
	}
	found := Binaries{}
	for _, p := range packages {
		command := path.Base(p)
		found[command] = filepath.Join(spec.Output, command)
	}
	return found, nil
}
