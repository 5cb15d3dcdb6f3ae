package jobs

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
)

// others is how many Pods may be lost before the Job is given up.
const others = 3

// nameOf is the name of the Job of a node. Names of nodes may be too long for it.
func nameOf(node string) string {
	return fmt.Sprintf(contract.InstallerName+"-%x", sha256.Sum256([]byte(node)))[:len(contract.InstallerName)+1+20]
}

// job is what is to begin. The Node owns it, so it goes with the Node.
func (b start) job(image string, secrets []corev1.LocalObjectReference) *batchv1.Job {
	labels := map[string]string{
		contract.ManagedLabel: contract.ManagedBy, contract.NameLabel: contract.InstallerName,
		"app.kubernetes.io/part-of": "weir",
	}
	if b.of != "" {
		labels[contract.NodePoolLabel] = b.of
	}
	notes := map[string]string{contract.InstallNode: b.node.Name, contract.InstallPool: b.pool}
	if b.why != "" {
		notes[contract.InstallStalled] = b.why
	}
	if b.tries > 0 {
		notes[contract.InstallTries] = strconv.Itoa(b.tries)
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: contract.ManagerNamespace, Name: nameOf(b.node.Name), Labels: labels,
			Annotations:     notes,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: b.node.Name, UID: b.node.UID}},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](others), ActiveDeadlineSeconds: ptr.To[int64](deadline), Suspend: ptr.To(b.why != ""),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: batchv1.PodFailurePolicyActionFailJob,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{1, 2},
				},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeName: b.node.Name, ImagePullSecrets: secrets, HostPID: true, HostNetwork: true, DNSPolicy: corev1.DNSDefault,
					PriorityClassName: "system-node-critical", RestartPolicy: corev1.RestartPolicyNever,
					AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{
						Name: "installer", Image: image, Args: []string{"node", "install", "--pool=" + b.pool},
						TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{
								corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
							},
						},
						SecurityContext: &corev1.SecurityContext{
							Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0), ReadOnlyRootFilesystem: ptr.To(true),
						},
					}},
				},
			},
		},
	}
}
