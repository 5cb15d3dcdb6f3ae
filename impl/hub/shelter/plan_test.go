package shelter

import (
	"math/rand/v2"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// anyStatus is a status that a kubelet might write.
func anyStatus(r *rand.Rand) (s corev1.PodStatus) {
	at := func() metav1.Time { return metav1.Unix(1_700_000_000+int64(r.IntN(3)), 0) }
	some := func(names ...string) string { return names[r.IntN(len(names))] }
	s.Phase, s.Reason = corev1.PodPhase(some("Pending", "Running", "Failed")), some("", "Evicted")
	s.QOSClass, s.ObservedGeneration = corev1.PodQOSBurstable, 1+int64(r.IntN(3))
	for _, i := range r.Perm(4)[:r.IntN(5)] {
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType("T" + strconv.Itoa(i)), Status: corev1.ConditionStatus(some("True", "False")),
			LastTransitionTime: at(), Reason: some("", "R"), ObservedGeneration: 1 + int64(r.IntN(3)),
		})
	}
	for _, i := range r.Perm(3)[:r.IntN(4)] {
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: "10.0.0." + strconv.Itoa(i)})
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
	for i := range r.IntN(4) {
		c := corev1.ContainerStatus{Name: "c" + strconv.Itoa(i), Ready: r.IntN(2) == 0, RestartCount: int32(r.IntN(3))}
		switch r.IntN(3) {
		case 0:
			c.State.Running = &corev1.ContainerStateRunning{StartedAt: at()}
		case 1:
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: some("", "CrashLoopBackOff")}
		default:
			c.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(r.IntN(2)), FinishedAt: at()}
			c.AllocatedResources = corev1.ResourceList{"cpu": resource.MustParse(some("1000m", "1", "500m"))}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, c)
	}
	return s
}

// TestPatchBecomes: the patch that makes one status of another, planned on the one, becomes the other.
func TestPatchBecomes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	d := &newDeeds().podStatus
	for range 500 {
		pod := newPod()
		pod.Status = anyStatus(r)
		want := anyStatus(r)
		p, err := patch(pod, "", statusPatch(t, pod.UID, pod.Status, want))
		check(t, err)
		is := p.becomes.(*corev1.Pod)
		if !equality.Semantic.DeepEqual(is.Status, want) {
			t.Fatalf("of\n%v\nbecomes\n%v\nwant\n%v", pod.Status, is.Status, want)
		}
		pod.Status = want
		if field := difference(is, pod); field != "" {
			t.Fatalf("%s differs", field)
		}
		raw, err := is.Marshal()
		check(t, err)
		read, ok := d.decode(raw)
		if !ok || difference(is, read) != "" {
			t.Fatalf("what is written as protobuf differs in %s", difference(is, read))
		}
	}
}

// TestPrepare: what a patch takes away and kube-apiserver keeps.
func TestPrepare(t *testing.T) {
	pod := newPod()
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}}
	p, err := patch(pod, "", []byte(`{"status":{"qosClass":null,"observedGeneration":null,`+
		`"resourceClaimStatuses":null,"conditions":[{"type":"PodScheduled","observedGeneration":null}]}}`))
	check(t, err)
	if field := difference(p.becomes, pod); field != "" {
		t.Errorf("%s is not kept", field)
	}
}

// TestDifference: each change of an object is one, but for managedFields, and nothing else is.
func TestDifference(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod){
		"":                             func(p *corev1.Pod) { p.ManagedFields, p.Kind = nil, "Pod" },
		".metadata.generation":         func(p *corev1.Pod) { p.Generation++ },
		".status.conditions[1].status": func(p *corev1.Pod) { p.Status.Conditions[1].Status = "True" },
		".status.conditions":           func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[1:] },
		".status.podIPs":               func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}} },
		".spec.nodeName":               func(p *corev1.Pod) { p.Spec.NodeName = "" },
	} {
		changed := newPod()
		change(changed)
		if got := difference(newPod(), changed); got != want {
			t.Errorf("%q differs, want %q", got, want)
		}
	}
}
