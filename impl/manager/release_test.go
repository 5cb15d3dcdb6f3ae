package manager

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestToleratedEnough: a pod whose time is over is told from one that taint eviction still counts for.
func TestToleratedEnough(t *testing.T) {
	added := metav1.NewTime(time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC))
	taint := &corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	tolerates := func(seconds *int64) corev1.Toleration {
		return corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds}
	}
	other := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](1)}
	for name, test := range map[string]struct {
		tolerations []corev1.Toleration
		taint       *corev1.Taint
		after       time.Duration
		want        bool
	}{
		"none":                       {nil, taint, 0, true},
		"of another taint":           {[]corev1.Toleration{other}, taint, 0, true},
		"five minutes, after two":    {[]corev1.Toleration{other, tolerates(ptr.To[int64](300))}, taint, 2 * time.Minute, false},
		"five minutes, nearly":       {[]corev1.Toleration{tolerates(ptr.To[int64](300))}, taint, 5*time.Minute - clocksApart, true},
		"five minutes, after six":    {[]corev1.Toleration{tolerates(ptr.To[int64](300))}, taint, 6 * time.Minute, true},
		"the least of two":           {[]corev1.Toleration{tolerates(ptr.To[int64](300)), tolerates(ptr.To[int64](30))}, taint, time.Minute, true},
		"for ever":                   {[]corev1.Toleration{tolerates(nil)}, taint, 24 * time.Hour, false},
		"not tainted":                {nil, nil, time.Hour, false},
		"tainted at a time not told": {nil, &corev1.Taint{Key: taint.Key, Effect: taint.Effect}, time.Hour, false},
	} {
		if got := toleratedEnough(test.tolerations, test.taint, added.Add(test.after)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
