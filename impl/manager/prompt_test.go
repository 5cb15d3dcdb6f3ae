package manager

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// TestPrompt: what does not come from a cloud that works is tried again, soon and for as long as it takes; any other
// answer is for the informer.
func TestPrompt(t *testing.T) {
	refused := error(syscall.ECONNREFUSED)
	for _, test := range []struct {
		name    string
		answers []error // then success
		want    error
		asked   int
	}{
		{"works", nil, nil, 1},
		{"away", []error{refused, refused, refused}, nil, 4},
		{
			"starts", []error{
				refused, apierrors.NewServiceUnavailable("no"), apierrors.NewTooManyRequests("storage is (re)initializing", 1),
			}, nil, 4,
		},
		{"broken", []error{apierrors.NewInternalError(refused)}, nil, 2},
		{"gone", []error{apierrors.NewResourceExpired("too old")}, apierrors.NewResourceExpired("too old"), 1},
		{"forbidden", []error{apierrors.NewForbidden(metav1.Unversioned.WithResource("leases").GroupResource(), "", nil)},
			apierrors.NewForbidden(metav1.Unversioned.WithResource("leases").GroupResource(), "", nil), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				answer := func() error {
					asked++
					if asked <= len(test.answers) {
						return test.answers[asked-1]
					}
					return nil
				}
				lw := &toolscache.ListWatch{
					ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, answer() },
					WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, answer() },
				}
				p := &prompt{lw, toolscache.ToListerWatcherWithContext(lw), clock.RealClock{}}
				began := time.Now()
				for what, do := range map[string]func() error{
					"list":  func() error { _, err := p.ListWithContext(t.Context(), metav1.ListOptions{}); return err },
					"watch": func() error { _, err := p.WatchWithContext(t.Context(), metav1.ListOptions{}); return err },
				} {
					asked = 0
					if err := do(); (err == nil) != (test.want == nil) || err != nil && err.Error() != test.want.Error() {
						t.Errorf("%s: got %v, want %v", what, err, test.want)
					}
					if asked != test.asked {
						t.Errorf("%s: asked %d times, want %d", what, asked, test.asked)
					}
				}
				if took, most := time.Since(began), time.Duration(2*(test.asked-1))*3*again/2; took > most {
					t.Errorf("it took %v, want at most %v", took, most)
				}
			})
		})
	}
}

// TestPromptEnds: nobody is asked any more when the context ends.
func TestPromptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lw := &toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return nil, syscall.ECONNREFUSED
			},
		}
		p := &prompt{lw, toolscache.ToListerWatcherWithContext(lw), clock.RealClock{}}
		if _, err := p.ListWithContext(ctx, metav1.ListOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
}
