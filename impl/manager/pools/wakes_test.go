package pools

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
)

// TestOwned: whoever edits or deletes an object of a pool wakes this pool, which puts it right.
func TestOwned(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	o := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Name: "leader-hub-harbour", Labels: map[string]string{contract.NodePoolLabel: "harbour"},
		},
	}
	wakes := owned[*corev1.Endpoints]()
	for about, tell := range map[string]func(){
		"deleted": func() {
			wakes.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Endpoints]{Object: o}, q)
		},
		"edited": func() {
			wakes.Update(t.Context(), event.TypedUpdateEvent[*corev1.Endpoints]{ObjectOld: o, ObjectNew: o}, q)
		},
	} {
		if tell(); q.Len() != 1 {
			t.Fatalf("%s: %d pools are woken", about, q.Len())
		}
		r, _ := q.Get()
		if q.Done(r); r.Name != "harbour" {
			t.Errorf("%s: %s is woken", about, r.Name)
		}
	}
}
