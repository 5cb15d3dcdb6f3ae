// Package cloudtest gives a test a real control plane of its own, which ends with the test.
package cloudtest

import (
	"testing"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

// Start starts a kube-apiserver, and finds or builds the other binaries a test wants.
func Start(t testing.TB, names ...string) (*cloud.Cloud, cloud.Binaries) {
	t.Helper()
	return StartWith(t, nil, names...)
}

// StartWith is Start with further flags of the kube-apiserver.
func StartWith(t testing.TB, args []string, names ...string) (*cloud.Cloud, cloud.Binaries) {
	t.Helper()
	s, progress := proctest.Spawner(t), func(m string) { t.Log(m) }
	binaries, err := cloud.Find(t.Context(), s, progress, append([]string{cloud.KubeAPIServer}, names...)...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Start(t.Context(), cloud.Config{
		Spawner: s, Binaries: binaries, LogDir: t.TempDir(), Args: args, Progress: progress,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, binaries
}
