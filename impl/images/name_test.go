package images

import (
	"strings"
	"testing"
)

// TestName: a name that a person types is the one that a kubelet tells, and what no registry could have is refused.
func TestName(t *testing.T) {
	sha := "sha256:" + strings.Repeat("ab", 32)
	for text, want := range map[string]string{
		"busybox":                              "docker.io/library/busybox:latest",
		"busybox:1.36":                         "docker.io/library/busybox:1.36",
		"index.docker.io/library/busybox:1.36": "docker.io/library/busybox:1.36",
		"weir/hub":                             "docker.io/weir/hub:latest",
		"localhost/hub:1":                      "localhost/hub:1",
		"registry.example:5000/a/b:v1":         "registry.example:5000/a/b:v1",
		"Registry.Example/a:v1":                "registry.example/a:v1",
		"registry.example/a@" + sha:            "registry.example/a@" + sha,
		"registry.example/a:v1@" + sha:         "registry.example/a@" + sha,
		"[fd00::1]:5000/a:v1":                  "[fd00::1]:5000/a:v1",
		"registry.example:443/a":               "registry.example/a:latest",
		"Big":                                  "",
		"a:":                                   "",
		"a:b c":                                "",
		"a/../b":                               "",
		"":                                     "",
		"a@sha256:12":                          "",
		"a@md5:12":                             "",
		"https://registry.example/a":           "",
		"-x.example/a":                         "",
		strings.Repeat("a", 300):               "",
		"registry.example/a:" + strings.Repeat("x", 129): "",
	} {
		got, err := ParseName(text)
		if want == "" && err == nil || want != "" && (err != nil || got.String() != want) {
			t.Errorf("%q: %v, %v, want %q", text, got, err, want)
		}
	}
}
