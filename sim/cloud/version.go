package cloud

import (
	"fmt"
	"strings"
)

// Version is the Kubernetes version of the testbed, the one that sim/controlplane builds.
const Version = "v1.37.1"

// minor is Version without the patch, "v1.37": any patch of it may be used when it is found.
func minor() string { return Version[:strings.LastIndex(Version, ".")] }

// ldflags make a built binary say its version, as the release builds do.
func ldflags() string {
	const pkg = "k8s.io/component-base/version."
	parts := strings.Split(strings.TrimPrefix(Version, "v"), ".")
	return fmt.Sprintf("-s -w -X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s", pkg, Version, parts[0], parts[1])
}
