package nodejob

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	// nobody is the user of the container: the program of the hub needs no right to say its version.
	nobody = 65534
	// kept is for how long a Job stays that has ended: a person looks at it the next day.
	kept = 24 * time.Hour
	// others is how many Pods may fail before a Job is given up. Those that are deleted do not count.
	others = 3

	program, image = "weir-hub", "image"
)

// Preload is one image for one node.
type Preload struct {
	Pool, Node, Image string
	Secrets           []string // of contract.ManagerNamespace, by which the kubelet pulls
	Deadline          time.Duration
	Now               bool // at any hour, and beside others
}

// PreloadLabels select the Jobs of all pools, and their Pods.
func PreloadLabels() map[string]string {
	return map[string]string{contract.NameLabel: contract.PreloadName}
}

// PreloadLabelsOf select those of a pool.
func PreloadLabelsOf(pool string) map[string]string {
	return map[string]string{contract.NameLabel: contract.PreloadName, contract.NodePoolLabel: pool}
}

// Job is that of an order. weir-manager lets it run, if it is not to run now.
func (o Preload) Job() *batchv1.Job {
	labels := PreloadLabelsOf(o.Pool)
	labels["app.kubernetes.io/part-of"] = "weir"
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: contract.ManagerNamespace, GenerateName: contract.PreloadName + "-", Labels: labels,
		},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(!o.Now), BackoffLimit: ptr.To[int32](others), PodFailurePolicy: deletedPods(),
			PodReplacementPolicy:    ptr.To(batchv1.Failed),
			ActiveDeadlineSeconds:   ptr.To(int64(o.Deadline / time.Second)),
			TTLSecondsAfterFinished: ptr.To(int32(kept / time.Second)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeName: o.Node, RestartPolicy: corev1.RestartPolicyNever,
					AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nobody), RunAsGroup: ptr.To[int64](nobody),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{o.container()},
					Volumes: []corev1.Volume{{Name: program, VolumeSource: corev1.VolumeSource{
						HostPath: &corev1.HostPathVolumeSource{
							Path: contract.HubProgram, Type: ptr.To(corev1.HostPathFile),
						},
					}}},
				},
			},
		},
	}
	for _, name := range o.Secrets {
		pod := &j.Spec.Template.Spec
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if o.Now {
		j.Annotations = map[string]string{contract.PreloadNow: "true"}
	}
	return j
}

// deletedPods has a Pod that was deleted count for nothing: hours that end, a drain and a node that was switched off
// delete Pods, and another one goes on. A kubelet says 137 of a container that a deletion kept from starting.
func deletedPods() *batchv1.PodFailurePolicy {
	const killed, terminated = 128 + 9, 128 + 15
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		},
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: ptr.To(image), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values: []int32{killed, terminated},
			},
		},
	}}
}

// container asks the registry what a tag leads to, also where the node has an image of that name.
func (o Preload) container() corev1.Container {
	const at = "/.weir/" + program
	return corev1.Container{
		Name: image, Image: o.Image, ImagePullPolicy: corev1.PullAlways, Command: []string{at, "--version"},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts:             []corev1.VolumeMount{{Name: program, MountPath: at, ReadOnly: true}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
