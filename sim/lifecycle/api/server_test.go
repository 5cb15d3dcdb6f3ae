package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/manager/manifests"
)

func client(t *testing.T, s *Server, user string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.As(user))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPreconditions: who writes at an old version, or to another object of the name, is told.
func TestPreconditions(t *testing.T) {
	s := New(Config{})
	nodes := client(t, s, "somebody").CoreV1().Nodes()
	first, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	second := first.DeepCopy()
	second.Spec.Unschedulable, second.Status.Phase = true, corev1.NodeRunning
	if second, err = nodes.Update(t.Context(), second, metav1.UpdateOptions{}); err != nil || !second.Spec.Unschedulable ||
		second.Status.Phase != "" {
		t.Errorf("an update changes status, or not the rest: %+v, %v", second, err)
	}
	if same, err := nodes.Update(t.Context(), second, metav1.UpdateOptions{}); err != nil ||
		same.ResourceVersion != second.ResourceVersion {
		t.Errorf("what changes nothing has a version of its own: %v", err)
	}
	if _, err := nodes.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old version is overwritten: %v", err)
	}
	second.Spec.Unschedulable, second.Status.Phase = false, corev1.NodeRunning
	if third, err := nodes.UpdateStatus(t.Context(), second, metav1.UpdateOptions{}); err != nil ||
		!third.Spec.Unschedulable || third.Status.Phase != corev1.NodeRunning {
		t.Errorf("an update of status changes the rest, or not status: %+v, %v", third, err)
	}
	for patch, allowed := range map[string]bool{
		`{"metadata":{"labels":{"x":"y"}}}`: true, `{"metadata":{"uid":"another","labels":{"x":"z"}}}`: false,
		`{"metadata":{"resourceVersion":"2","labels":{"x":"z"}}}`: false,
	} {
		if _, err := nodes.Patch(t.Context(), "a", types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); (err == nil) != allowed {
			t.Errorf("patch %s: %v", patch, err)
		}
	}
	if _, err := nodes.Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got what is not there: %v", err)
	}
}

// TestInformers: caches follow, through a restart of the Server too.
func TestInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		if err := s.Load(manifests.Policies()); err != nil {
			t.Fatal(err)
		}
		c := client(t, s, "somebody")
		create := func(name string) {
			t.Helper()
			if _, err := c.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}},
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create("a")
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(c, 0)
		pods := factory.Core().V1().Pods().Informer()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		holds := func(what string, names ...string) {
			t.Helper()
			time.Sleep(time.Minute) // of fake time: it lists again
			if keys := pods.GetStore().ListKeys(); len(keys) != len(names) {
				t.Errorf("%s: the cache holds %v, want %v", what, keys, names)
			}
		}
		create("b")
		holds("a new one", "a", "b")
		s.Away(true)
		if _, err := c.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
			t.Error("it is away and answers")
		}
		s.Away(false)
		if err := c.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		create("c")
		create("d")
		holds("after a restart", "b", "c", "d")
		if maps, err := c.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}); err != nil ||
			len(maps.Items) != 5 {
			t.Errorf("manifests: %v, %v", maps, err)
		}
		cancel()
		factory.Shutdown()
	})
}
