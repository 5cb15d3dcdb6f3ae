package workload

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// writers of Fill work side by side.
const writers = 8

// Fill writes all objects of the workload into a cloud that has none of them. progress may be nil.
func (w *Workload) Fill(ctx context.Context, client kubernetes.Interface, progress Progress) error {
	if w.err != nil {
		return w.err
	}
	for _, name := range namespaces[:min(len(namespaces), len(w.services))] {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	var mu sync.Mutex
	done, total := 0, w.Objects()
	wrote := func() {
		if progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		progress(done, total)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, s := range w.services {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.create(ctx, client, wrote); err != nil {
				return fmt.Errorf("fill %s/%s: %w", s.namespace, s.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// create writes the Service, then its slices, which need its uid, then its Endpoints.
func (s *service) create(ctx context.Context, client kubernetes.Interface, wrote func()) error {
	created, err := client.CoreV1().Services(s.namespace).Create(ctx, s.object(), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.uid = created.UID
	wrote()
	for _, sl := range s.slices {
		if _, err := s.writeSlice(ctx, client, sl); err != nil {
			return err
		}
		wrote()
	}
	if _, err := s.writeEndpoints(ctx, client); err != nil {
		return err
	}
	wrote()
	return nil
}
