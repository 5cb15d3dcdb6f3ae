package hub

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informer is a stock reflector of Endpoints, through a hub.
type informer struct {
	store          cache.Store
	lists, watches atomic.Int32
}

func (b *bed) inform(token string) *informer {
	b.t.Helper()
	c, err := rest.RESTClientFor(&rest.Config{
		Host: b.url(), APIPath: "/api", BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: b.local.pem},
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
			ContentType: runtime.ContentTypeProtobuf,
		},
	})
	check(b.t, err)
	i := &informer{store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	ask := func(o metav1.ListOptions) *rest.Request {
		return c.Get().Resource("endpoints").VersionedParams(&o, scheme.ParameterCodec)
	}
	r := cache.NewReflector(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			i.lists.Add(1)
			l := &corev1.EndpointsList{}
			return l, ask(o).Do(ctx).Into(l)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			i.watches.Add(1)
			o.Watch = true
			if o.SendInitialEvents != nil {
				i.lists.Add(1)
			}
			return ask(o).Watch(ctx)
		},
	}, &corev1.Endpoints{}, i.store, 0)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		<-done
		c.Client.CloseIdleConnections()
	})
	return i
}

func (i *informer) shows(b *bed, name string) {
	b.t.Helper()
	eventually(b.t, "the informer to show "+name, func() bool {
		_, ok, _ := i.store.GetByKey("default/" + name)
		return ok
	})
}

// withoutRights is a hub whose own user the cloud lets read nothing yet, behind a link.
func withoutRights(t *testing.T) (*bed, *cut) {
	t.Helper()
	b, link := offlineBed(t)
	b.config.PoolScopeResources = []string{"endpoints.v1."}
	b.clouds[0].denies = func(user, _ string) int {
		if user == "weir:hub:pool-a:edge-1" {
			return http.StatusForbidden
		}
		return 0
	}
	b.start()
	eventually(t, "the relay to be denied", func() bool { return b.hub.sources.All()[0].Unavailable() })
	return b, link
}

// TestPassedWatchIsTakenOver: a watch that was passed to the cloud, as the relay had nothing to answer with, ends in
// order once the relay goes on where it stands. A stock client goes on there and does not list; nor does it when the
// link is cut after that.
func TestPassedWatchIsTakenOver(t *testing.T) {
	b, link := withoutRights(t)
	b.clouds[0].put("default", "first")
	i := b.inform("alice")
	i.shows(b, "first")
	b.clouds[0].set(func() { b.clouds[0].denies = func(string, string) int { return 0 } })
	b.hub.sources.All()[0].Kick()
	r := b.hub.sources.Relays()[0]
	eventually(t, "the relay to be synced", func() bool {
		return r.Status().Synced && !b.hub.sources.All()[0].Unavailable()
	})
	if n := r.Status().Watchers; n != 0 {
		t.Fatalf("the relay has %d watchers before anything was shown from which it can go on", n)
	}
	b.clouds[0].put("default", "second")
	i.shows(b, "second")
	eventually(t, "the relay to have the watch", func() bool { return r.Status().Watchers == 1 })
	b.clouds[0].put("default", "third")
	i.shows(b, "third")
	link.set(true)
	b.away()
	link.set(false)
	b.here()
	b.clouds[0].put("default", "fourth")
	i.shows(b, "fourth")
	if lists, watches := i.lists.Load(), i.watches.Load(); lists != 1 || watches > 3 {
		t.Errorf("the client listed %d times and watched %d times, want one list", lists, watches)
	}
}

// TestPassedWatchBreaks: one that breaks with the link ends in order as well. The client asks again until the link is
// back, and goes on at the version that it has.
func TestPassedWatchBreaks(t *testing.T) {
	b, link := withoutRights(t)
	b.clouds[0].put("default", "first")
	i := b.inform("alice")
	i.shows(b, "first")
	before := i.watches.Load()
	link.set(true)
	b.away()
	eventually(t, "the client to watch again", func() bool { return i.watches.Load() > before })
	link.set(false)
	b.here()
	b.clouds[0].put("default", "second")
	i.shows(b, "second")
	if n := i.lists.Load(); n != 1 {
		t.Errorf("the client listed %d times, want once", n)
	}
}
