package manager

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
)

// waits is a queue that notes what it is asked for: "pool after how long".
type waits struct {
	queue
	asked []string
}

func (w *waits) AddAfter(r reconcile.Request, after time.Duration) {
	w.asked = append(w.asked, fmt.Sprintf("%s %v", r.Name, after))
}

// TestMembership: nodes that join are gathered, so that a pool of a thousand is not written a thousand times. A node
// that leaves or is deleted has left at once.
func TestMembership(t *testing.T) {
	node := func(pool, uid string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: "n", UID: types.UID(uid), Labels: map[string]string{contract.NodePoolLabel: pool},
			},
		}
	}
	h := membership()
	for _, c := range []struct {
		what    string
		was, is *corev1.Node
		pools   []string
	}{
		{"joins", nil, node("a", "1"), []string{"a 500ms"}},
		{"is in no pool", nil, node("", "1"), nil},
		{"is deleted", node("a", "1"), nil, []string{"a 0s"}},
		{"moves", node("a", "1"), node("b", "1"), []string{"a 0s", "b 500ms"}},
		{"is labelled", node("", "1"), node("a", "1"), []string{"a 500ms"}},
		{"leaves", node("a", "1"), node("", "1"), []string{"a 0s"}},
		{"is another one", node("a", "1"), node("a", "2"), []string{"a 0s", "a 500ms"}},
		{"stays", node("a", "1"), node("a", "1"), nil},
	} {
		q := &waits{}
		switch {
		case c.was == nil:
			h.Create(t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: c.is}, q)
		case c.is == nil:
			h.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Node]{Object: c.was}, q)
		default:
			h.Update(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: c.was, ObjectNew: c.is}, q)
		}
		if !slices.Equal(q.asked, c.pools) {
			t.Errorf("a node that %s: %q", c.what, q.asked)
		}
	}
}
