package autonomy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpread: each Service has pods of each node, DNS has its own, and each pod has one Service.
func TestSpread(t *testing.T) {
	l := newLed(2, []string{"a", "b"}, 3, map[string]string{"b": "coredns-b"})
	want := map[string][]string{
		"service-1": {"app-a-1", "app-a-2", "app-b-1", "app-b-2"}, "service-2": {"job-a-1", "job-b-1"},
		"kube-dns": {"coredns-b"},
	}
	if diff := cmp.Diff(want, l.pods); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for service, pods := range want {
		for _, pod := range pods {
			if l.of(pod) != service {
				t.Errorf("%s is of %s, want %s", pod, l.of(pod), service)
			}
		}
	}
	if none := (*led)(nil); none.of("app-a-1") != "" {
		t.Error("without Services a pod has one")
	}
}

// TestNewest: a pod is where the last of its containers runs.
func TestNewest(t *testing.T) {
	one := container{Pod: "a", State: runningState, StartedAt: 1, Address: "10.0.0.1"}
	two := container{Pod: "a", State: runningState, StartedAt: 2, Address: "10.0.0.2"}
	ended := container{Pod: "a", State: "CONTAINER_EXITED", StartedAt: 3, Address: "10.0.0.3"}
	for _, all := range [][]container{{one, two, ended}, {ended, two, one}} {
		if diff := cmp.Diff(map[string]container{"a": two}, newest(all)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
