package manifests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// lasts is how long a watch lasts at least, and at most twice as long.
const lasts = 30 * time.Minute

// NewInformer makes an informer, as toolscache.NewSharedIndexInformer does.
type NewInformer func(toolscache.ListerWatcher, runtime.Object, time.Duration,
	toolscache.Indexers) toolscache.SharedIndexInformer

// Watched knows some objects.
type Watched struct {
	scheme *runtime.Scheme
	all    map[key]*object
}

type key struct {
	kind schema.GroupVersionKind
	name client.ObjectKey
}

// NewWatched returns what knows the objects that have these types and names. It asks for nothing before Start. Of a
// PartialObjectMetadata it reads the metadata of the kind that this says.
func NewWatched(c client.WithWatch, informer NewInformer, objects ...client.Object) (*Watched, error) {
	r := &Watched{scheme: c.Scheme(), all: map[key]*object{}}
	for _, o := range objects {
		k, err := r.keyOf(o, client.ObjectKeyFromObject(o))
		if err != nil {
			return nil, err
		}
		one := &object{key: k, client: c, known: make(chan struct{})}
		empty := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
		_, one.thin = o.(*metav1.PartialObjectMetadata)
		one.informer = informer(&toolscache.ListWatch{
			ListWithContextFunc: one.list, WatchFuncWithContext: one.watch,
		}, empty, 0, toolscache.Indexers{})
		if err := one.informer.SetTransform(cache.TransformStripManagedFields()); err != nil {
			return nil, fmt.Errorf("watch %s %s: %w", k.kind.Kind, k.name, err)
		}
		r.all[k] = one
	}
	return r, nil
}

func (r *Watched) keyOf(o client.Object, name client.ObjectKey) (key, error) {
	kind, err := apiutil.GVKForObject(o, r.scheme)
	return key{kind, name}, err
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *Watched) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it watches until the context ends.
func (r *Watched) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, o := range r.all {
		all.Go(func() { o.informer.RunWithContext(ctx) })
		all.Go(func() {
			if toolscache.WaitForCacheSync(ctx.Done(), o.informer.HasSynced) {
				o.hear(nil)
			}
		})
	}
	all.Wait()
	return nil
}

// Get fills in an object, as a client.Reader does. It waits for the first answer of the cluster.
func (r *Watched) Get(ctx context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k, err := r.keyOf(into, name)
	if err != nil {
		return err
	}
	o := r.all[k]
	if o == nil {
		return fmt.Errorf("%s %s is not watched", k.kind.Kind, name)
	}
	select {
	case <-o.known:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := o.refused(); err != nil {
		return err
	}
	is, there, err := o.informer.GetStore().GetByKey(cacheKey(name))
	switch {
	case err != nil:
		return err
	case !there:
		return apierrors.NewNotFound(schema.GroupResource{Group: k.kind.Group, Resource: k.kind.Kind}, name.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(is.(runtime.Object).DeepCopyObject()).Elem())
	return nil
}

// Follow calls changed, which does not block, with an object as it is whenever it is another than before; nil: it is
// gone.
func (r *Watched) Follow(o client.Object, changed func(is client.Object)) error {
	k, err := r.keyOf(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	is := func(o any) { changed(o.(client.Object)) }
	_, err = r.all[k].informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: is, UpdateFunc: func(_, o any) { is(o) }, DeleteFunc: func(any) { changed(nil) },
	})
	return err
}

// FollowAll calls changed, which does not block, whenever Get says another thing of any object. It is called before
// Start.
func (r *Watched) FollowAll(changed func()) error {
	for _, o := range r.all {
		o.told = changed
		if _, err := o.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(_, _ any) { changed() }, DeleteFunc: func(any) { changed() },
		}); err != nil {
			return err
		}
	}
	return nil
}

func cacheKey(name client.ObjectKey) string {
	return toolscache.ObjectName{Namespace: name.Namespace, Name: name.Name}.String()
}

// object is one of them, whether there is one or not.
type object struct {
	key
	client   client.WithWatch
	informer toolscache.SharedIndexInformer
	thin     bool          // of its metadata alone
	told     func()        // nil: nobody
	known    chan struct{} // closed when Get has an answer

	mu   sync.Mutex
	once sync.Once
	err  error // why it cannot be read
}

// hear notes what became of a list or a watch. A cloud that cannot be reached refuses nothing.
func (o *object) hear(err error) {
	reached := err == nil || meta.IsNoMatchError(err) || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
	o.mu.Lock()
	changed := (o.err == nil) != (err == nil)
	if reached || !o.informer.HasSynced() {
		o.err = err
	}
	o.mu.Unlock()
	if err != nil || o.informer.HasSynced() {
		o.once.Do(func() { close(o.known) })
	}
	if changed && o.told != nil {
		o.told()
	}
}

func (o *object) refused() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// objects is an empty list of the kind, and how to ask for this one.
func (o *object) objects(options metav1.ListOptions) (client.ObjectList, client.ListOption, error) {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", o.name.Name).String()
	one := &client.ListOptions{Namespace: o.name.Namespace, Raw: &options}
	kind := o.kind.GroupVersion().WithKind(o.kind.Kind + "List")
	if o.thin {
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(kind)
		return all, one, nil
	}
	list, err := o.client.Scheme().New(kind)
	if err != nil {
		return nil, nil, err
	}
	return list.(client.ObjectList), one, nil
}

func (o *object) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	all, of, err := o.objects(options)
	if err != nil {
		return nil, err
	}
	if err = o.client.List(ctx, all, of); ctx.Err() == nil {
		o.hear(err)
	}
	return all, err
}

func (o *object) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	seconds := int64((lasts + rand.N(lasts)) / time.Second)
	options.TimeoutSeconds = &seconds
	all, of, err := o.objects(options)
	if err != nil {
		return nil, err
	}
	w, err := o.client.Watch(ctx, all, of)
	if ctx.Err() == nil {
		o.hear(err)
	}
	return w, err
}
