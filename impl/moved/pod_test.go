package moved

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// podOf is the Pod p of node a as the cloud has it.
func podOf(phase corev1.PodPhase, ready corev1.ConditionStatus, ips ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "p", ResourceVersion: "77"},
		Spec:       corev1.PodSpec{NodeName: "a", Hostname: "web-0"},
		Status: corev1.PodStatus{
			Phase: phase, Message: "m", HostIP: "192.168.0.3",
			Conditions: []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}},
		},
	}
	if ready != "" {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodReady, Status: ready, Reason: "Because"})
	}
	for i, ip := range ips {
		if i == 0 {
			p.Status.PodIP = ip
		}
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	return p
}

// TestPod: a Pod is shown with the addresses and the readiness that its node says. Nothing else of it changes.
func TestPod(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	before := podOf(corev1.PodRunning, yes, "10.0.0.1")
	for name, c := range map[string]struct {
		says   []string
		of     string // the node that says it; "": a
		silent bool
		in     *corev1.Pod
		want   *corev1.Pod // nil: as it came
	}{
		"nothing is said": {},
		"another address": {says: []string{"p=10.0.0.9"}, want: podOf(corev1.PodRunning, yes, "10.0.0.9")},
		"both families": {
			says: []string{"p=10.0.0.9,fd00::9"}, in: podOf(corev1.PodRunning, yes, "10.0.0.1", "fd00::1"),
			want: podOf(corev1.PodRunning, yes, "10.0.0.9", "fd00::9"),
		},
		"the first address is the same": {
			says: []string{"p=10.0.0.1,fd00::9"}, in: podOf(corev1.PodRunning, yes, "10.0.0.1", "fd00::1"),
			want: podOf(corev1.PodRunning, yes, "10.0.0.1", "fd00::9"),
		},
		"not ready":   {says: []string{"p~10.0.0.1"}, want: podOf(corev1.PodRunning, no, "10.0.0.1")},
		"no address":  {says: []string{"p~"}, want: podOf(corev1.PodRunning, no)},
		"gone":        {says: []string{"p!"}, want: podOf(corev1.PodRunning, no)},
		"as it is":    {says: []string{"p=10.0.0.1"}},
		"another pod": {says: []string{"q=10.0.0.9"}},
		"gone there, too": {
			says: []string{"p=10.0.0.9"}, in: podOf(corev1.PodFailed, no, "10.0.0.1"),
		},
		"ready by now": {
			says: []string{"p=10.0.0.9"}, in: podOf(corev1.PodPending, ""),
			want: func() *corev1.Pod {
				p := podOf(corev1.PodPending, yes, "10.0.0.9")
				p.Status.Conditions[1].Reason = ""
				return p
			}(),
		},
		"another node says it": {says: []string{"p=10.0.0.9"}, of: "b"},
		"its node is silent":   {silent: true, want: podOf(corev1.PodRunning, no, "10.0.0.1")},
		"silent, and said it before": {
			silent: true, says: []string{"p=10.0.0.9"}, want: podOf(corev1.PodRunning, no, "10.0.0.9"),
		},
		"silent, and it is not ready": {
			silent: true, in: podOf(corev1.PodRunning, no, "10.0.0.1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool(t, "a", "b")
			if c.of == "" {
				c.of = "a"
			}
			if c.in == nil {
				c.in = before
			}
			says(t, s, c.of, 1, c.says...)
			for now := 2 * Every; c.silent && now <= Silence; now += 2 * Every {
				s.Expire(now)
			}
			in := encoded(t, wire.Protobuf, c.in)
			was := string(in.Raw)
			out := s.PodForm()(in)
			var got corev1.Pod
			if err := got.Unmarshal(out.Raw); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == nil {
				want = c.in
			}
			if (out == in) != (c.want == nil) || !reflect.DeepEqual(&got, want) {
				t.Errorf("%+v, want %+v; the same object: %t", got.Status, want.Status, out == in)
			}
			if string(in.Raw) != was || wire.Path(out.Raw, 99) != "new" {
				t.Error("what came was changed, or an unknown field is lost")
			}
		})
	}
	s := pool(t, "a")
	says(t, s, "a", 1, "p=10.0.0.9")
	odd := &wire.Object{Key: "shop/web", UID: "p", Raw: []byte("\xff{")}
	if s.PodForm()(odd) != odd {
		t.Error("what cannot be read does not pass")
	}
}
