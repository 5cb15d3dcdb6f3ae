package command

import "testing"

// TestByDefault: what nobody read is excused if a pool shares it by default and no client of the runs reads it.
func TestByDefault(t *testing.T) {
	for grant, want := range map[string]bool{
		"ClusterRole weir:hub: list nodes":                            true,
		"ClusterRole weir:hub: watch csidrivers.storage.k8s.io":       true,
		"ClusterRole weir:hub: watch endpoints":                       false,
		"ClusterRole weir:hub: list endpointslices.discovery.k8s.io":  false,
		"ClusterRole weir:hub: list pods":                             false,
		"ClusterRole weir:hub: get nodes":                             false,
		"ClusterRole weir:hub-topology: list nodes":                   false,
		"ClusterRole weir:joins: list nodes":                          false,
		"ClusterRole weir:hub: get /.well-known/openid-configuration": false,
	} {
		if byDefault(grant) != want {
			t.Errorf("%s is excused: %v", grant, !want)
		}
	}
}
