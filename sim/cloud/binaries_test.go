package cloud

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/proc/gobuild"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

func fake(t *testing.T, dir, name, version string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho Kubernetes "+version+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindTakesWhatIsInstalled(t *testing.T) {
	t.Setenv(VersionEnv, Version)
	s := proctest.Spawner(t)
	assets, bin := t.TempDir(), t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	fake(t, assets, KubeAPIServer, "v1.30.0") // too old: passed over
	want := fake(t, bin, KubeAPIServer, "v1.37.4")
	kubectl := fake(t, assets, Kubectl, "v1.37.0")
	fake(t, bin, Kubectl, "v1.37.9") // the assets come first

	var told []string
	got, err := Find(t.Context(), s, func(m string) { told = append(told, m) }, KubeAPIServer, Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	if got[KubeAPIServer] != want || got[Kubectl] != kubectl {
		t.Errorf("got %v", got)
	}
	if !strings.HasSuffix(told[0], "kube-apiserver is v1.30.0 and is not used: want v1.37.x") {
		t.Errorf("told %q", told)
	}
}

func TestFindTakesWhatIsCached(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root, err := gobuild.Root("")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	const unusual = "kube-apiserver" // not on PATH of a developer as a rule, and if so then cached does not matter
	found := map[string]bool{}
	for _, k := range versions() {
		key, err := k.contentKey(t.Context(), root, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(cache, key), 0o755); err != nil {
			t.Fatal(err)
		}
		want := fake(t, filepath.Join(cache, key), unusual, k.String())
		got, err := k.buildCached(t.Context(), proctest.Spawner(t), func(string) {}, []string{unusual})
		if err != nil || got[unusual] != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
		found[want] = true
	}
	if len(found) != len(versions()) {
		t.Errorf("versions share what was built: %v", found)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func(time.Duration) { t.Error("waited for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{}, 1)
	second := make(chan error, 1)
	go func() {
		unlock, err := lock(context.WithoutCancel(t.Context()), path, func(time.Duration) { waiting <- struct{}{} })
		if err == nil {
			unlock()
		}
		second <- err
	}()
	<-waiting
	select {
	case <-second:
		t.Error("two hold the lock")
	default:
	}
	unlock()
	if err := <-second; err != nil {
		t.Error(err)
	}

	if unlock, err = lock(t.Context(), path, func(time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, func(time.Duration) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
