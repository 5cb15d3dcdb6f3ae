package coordinator

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// apiVersion is the Kubernetes whose API this is. k8s.io/component-base knows its version only if the linker told it,
// and clients refuse what they cannot parse.
type apiVersion struct {
	basecompatibility.EffectiveVersion
	git string
}

func newAPIVersion() apiVersion {
	v := apiVersion{EffectiveVersion: compatibility.DefaultBuildEffectiveVersion()}
	v.git = fmt.Sprintf("v%d.%d.0", v.BinaryVersion().Major(), v.BinaryVersion().Minor())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if release, ok := strings.CutPrefix(m.Version, "v0."); ok && m.Path == "k8s.io/apiserver" {
				v.git = "v1." + release
			}
		}
	}
	v.git += "+weir"
	return v
}

// Info is what /version answers.
func (v apiVersion) Info() *version.Info {
	major, rest, _ := strings.Cut(strings.TrimPrefix(v.git, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return &version.Info{
		Major: major, Minor: minor, GitVersion: v.git,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
