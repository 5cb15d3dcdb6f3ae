package cloud

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
)

// Version is the version of Kubernetes that the testbed takes when nobody asks for another.
const Version = "v1.37.1"

// VersionEnv asks for another one, for tests and for commands without --kubernetes.
const VersionEnv = "WEIR_KUBERNETES"

// Kubernetes is a version of Kubernetes that the testbed builds. Choose returns one.
type Kubernetes struct {
	version string
	module  string   // nested module below the root of the repository
	lacks   []string // commands that are not built for it
}

// versions are all of them, the newest first. The oldest is the first that serves all that Weir needs, as kubeVersion
// of the chart has it.
func versions() []Kubernetes {
	return []Kubernetes{
		{version: Version, module: moduleDir},
		// What is ours is compiled with the newest libraries: a kubelet that is newer than its API server is nothing that
		// Kubernetes supports.
		{version: "v1.36.3", module: moduleDir + "/kubernetes-1.36", lacks: []string{Kubelet, HollowNode, E2E}},
	}
}

// Versions are those that can be asked for, the newest first.
func Versions() []string {
	var all []string
	for _, k := range versions() {
		all = append(all, k.version)
	}
	return all
}

// Choose returns a version by its name. An empty name is what the environment asks for.
func Choose(name string) (Kubernetes, error) {
	field := "--kubernetes"
	if name == "" {
		field, name = VersionEnv, os.Getenv(VersionEnv)
	}
	if name == "" {
		name = Version
	}
	for _, k := range versions() {
		if k.version == name {
			return k, nil
		}
	}
	return Kubernetes{}, cli.Usage(field, name, strings.Join(Versions(), " or "))
}

// String is the version: "v1.37.1".
func (k Kubernetes) String() string { return k.version }

// Lacks reports whether a command is not built for this version.
func (k Kubernetes) Lacks(name string) bool { return slices.Contains(k.lacks, name) }

// minor is the version without the patch, "v1.37": any patch of it may be used when it is found.
func (k Kubernetes) minor() string { return k.version[:strings.LastIndex(k.version, ".")] }

// ldflags make a built binary say its version, as the release builds do.
func (k Kubernetes) ldflags() string {
	const pkg = "k8s.io/component-base/version."
	parts := strings.Split(strings.TrimPrefix(k.version, "v"), ".")
	return fmt.Sprintf("-s -w -X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s", pkg, k.version,
		parts[0], parts[1])
}

// check tells what a version lacks of what is wanted, and which versions have it.
func (k Kubernetes) check(names []string) error {
	for _, name := range names {
		if !k.Lacks(name) {
			continue
		}
		var have []string
		for _, other := range versions() {
			if !other.Lacks(name) {
				have = append(have, other.version)
			}
		}
		return cli.Usage("version of Kubernetes", k.version,
			fmt.Sprintf("this needs %s, which is there for %s", name, strings.Join(have, " or ")))
	}
	return nil
}
