package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	relayrest "github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// example's Pods have the fields of core's under the same numbers, so a relay of Pods holds them, with its field
// selectors.
var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
	codec  runtime.Codec
	podsOf = schema.GroupResource{Resource: "pods"}
	kind   = wire.Kind{APIVersion: "v1", Kind: "Pod"}
)

func init() { //nolint:gochecknoinits // a scheme is filled once
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	pb := protobuf.NewSerializer(scheme, scheme)
	codec = codecs.CodecForVersions(pb, pb, schema.GroupVersions{examplev1.SchemeGroupVersion}, nil)
}

// relayStore is a storage.Interface that writes to etcd, and reads, lists and watches at a relay that is fed from
// there. As a hub does, it lets a write return when the relay has it.
type relayStore struct {
	storage.Interface // etcd
	relay             *relay.Relay
	url               string
	etcd              *clientv3.Client
	recorder          *storagetesting.KubernetesRecorder
	clock             *agingClock
	forgetful         bool // changes are apart
	when              sync.Map
	consistent        bool // reads without a version ask etcd for its own first
}

const (
	// ringAge is far more than a test takes.
	ringAge = 1000 * time.Hour
	// apart is how far apart changes are for a relay that is to forget some of them.
	apart = time.Hour
)

// agingClock goes as the real one, and can make a relay old.
type agingClock struct {
	clock.RealClock
	ahead atomic.Int64
}

// Now implements clock.Clock.
func (c *agingClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// newRelayStore starts an etcd and a relay of its own.
func newRelayStore(t *testing.T, j *judged) *relayStore {
	t.Helper()
	config := testserver.NewTestConfig(t)
	config.WatchProgressNotifyInterval = 100 * time.Millisecond
	etcd := testserver.RunEtcd(t, config)
	versioner := storage.APIObjectVersioner{}
	compactor := etcd3.NewCompactor(etcd.Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	store, err := etcd3.New(etcd, compactor, codec, func() runtime.Object { return &example.Pod{} },
		func() runtime.Object { return &example.PodList{} },
		"/registry", "/pods/", podsOf, identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(),
		etcd3.NewDefaultDecoder(codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	aging := &agingClock{}
	r, err := relay.New(relay.Config{
		Clock: aging, RingAge: ringAge, Resource: relay.NewResource("", "v1", "pods", kind, !j.global, wire.Protobuf),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&relayrest.Handler{Source: r})
	s := &relayStore{
		Interface: store, relay: r, url: srv.URL + "/api/v1/", etcd: etcd.Client,
		recorder: etcd.Kubernetes.(*storagetesting.KubernetesRecorder), clock: aging, forgetful: j.forgetful,
		consistent: j.consistent,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	wg.Go(func() {
		if err := s.feed(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("feed the relay: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); srv.Close(); wg.Wait() })
	if err := r.WaitVersion(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return s
}

// feed lists and watches etcd as kube-apiserver's watch cache does.
func (s *relayStore) feed(ctx context.Context) error {
	list := &example.PodList{}
	all := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	if err := s.Interface.GetList(ctx, "/pods/", all, list); err != nil {
		return err
	}
	version, err := wire.ParseVersion(list.ResourceVersion)
	if err != nil {
		return err
	}
	if err := s.relay.Replace(version, nil); err != nil { // the store is new
		return err
	}
	all.ResourceVersion, all.ProgressNotify = list.ResourceVersion, true
	w, err := s.Interface.Watch(ctx, "/pods/", all)
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		in, err := encodeEvent(e)
		if err != nil {
			return err
		}
		if s.forgetful && e.Type != watch.Bookmark {
			s.clock.ahead.Add(int64(apart))
			s.when.Store(in.Version, s.clock.Now())
		}
		if err := s.relay.Apply(in); err != nil {
			return err
		}
	}
	return errors.New("the watch of etcd ended")
}

func encodeEvent(e watch.Event) (*wire.Event, error) {
	if e.Type == watch.Error {
		return nil, apierrors.FromObject(e.Object)
	}
	body, err := runtime.Encode(codec, e.Object)
	if err != nil {
		return nil, err
	}
	_, raw, err := wire.SplitEnvelope(body)
	if err != nil {
		return nil, err
	}
	return wire.NewEventReader(bytes.NewReader(wire.AppendProtobufFrame(nil, string(e.Type), kind, raw)), wire.Protobuf,
		kind).Next()
}

// wrote waits until the relay has what was written, as a hub does for its clients.
func (s *relayStore) wrote(ctx context.Context, out runtime.Object, err error) error {
	if err != nil || out == nil {
		return err
	}
	o, err := meta.Accessor(out)
	if err != nil {
		return err
	}
	version, err := wire.ParseVersion(o.GetResourceVersion())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.relay.WaitVersion(ctx, version)
}

// Create implements storage.Interface.
func (s *relayStore) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if out == nil {
		out = &example.Pod{}
	}
	return s.wrote(ctx, out, s.Interface.Create(ctx, key, obj, out, ttl))
}

// Delete implements storage.Interface.
func (s *relayStore) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	return s.wrote(ctx, out, s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts))
}

// GuaranteedUpdate implements storage.Interface.
func (s *relayStore) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	return s.wrote(ctx, out, s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached))
}

// path is the URL of a key, and the selector of one object of a list.
func (s *relayStore) path(key string, one bool) (path, name string) {
	rest := strings.TrimPrefix(strings.TrimPrefix(key, "/pods"), "/")
	var namespace string
	if one {
		i := strings.LastIndexByte(rest, '/')
		rest, name = rest[:max(i, 0)], rest[i+1:]
	}
	if namespace = strings.Trim(rest, "/"); namespace != "" {
		return s.url + "namespaces/" + namespace + "/pods", name
	}
	return s.url + "pods", name
}

// Get implements storage.Interface.
func (s *relayStore) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	path, name := s.path(key, true)
	q := url.Values{}
	if opts.ResourceVersion != "" {
		q.Set("resourceVersion", opts.ResourceVersion)
	}
	body, err := s.read(ctx, path+"/"+name, q)
	switch {
	case apierrors.IsNotFound(err) && opts.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	case apierrors.IsNotFound(err):
		return storage.NewKeyNotFoundError(key, 0)
	case err != nil:
		return err
	}
	_, raw, err := wire.SplitEnvelope(body)
	if err != nil {
		return err
	}
	return decode(raw, out)
}

// GetList implements storage.Interface.
func (s *relayStore) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	if s.consistent && opts.ResourceVersion == "" {
		if err := s.caughtUp(ctx); err != nil {
			return err
		}
	}
	path, q := s.query(key, opts)
	if opts.Predicate.Limit > 0 {
		q.Set("limit", strconv.FormatInt(opts.Predicate.Limit, 10))
	}
	if opts.Predicate.Continue != "" {
		token, err := slash(opts.Predicate.Continue, true)
		if err != nil {
			return err
		}
		q.Set("continue", token)
	}
	body, err := s.read(ctx, path, q)
	if err != nil {
		return err
	}
	list := out.(*example.PodList)
	list.Items = []example.Pod{}
	m, err := wire.ReadList(bytes.NewReader(body), wire.Protobuf, kind, func(o *wire.Object) error {
		pod := example.Pod{}
		err := decode(o.Raw, &pod)
		list.Items = append(list.Items, pod)
		return err
	})
	if err != nil {
		return err
	}
	list.ListMeta = metav1.ListMeta{ResourceVersion: wire.FormatVersion(m.Version), RemainingItemCount: m.Remaining}
	if m.Continue != "" {
		list.Continue, err = slash(m.Continue, false)
	}
	return err
}

// caughtUp waits until the relay has reached what etcd is at: what somebody does who needs the guarantee of a
// consistent read, that a relay does not give.
func (s *relayStore) caughtUp(ctx context.Context) error {
	version, err := s.Interface.GetCurrentResourceVersion(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.relay.WaitVersion(ctx, version)
}

// slash puts the slash before the key of a continue token, or takes it away: kube-apiserver's registries have "/pods"
// for the prefix of keys, and so has a relay; these tests have "/pods/".
func slash(token string, put bool) (string, error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", err
	}
	var c struct {
		APIVersion      string `json:"v"`
		ResourceVersion int64  `json:"rv"`
		StartKey        string `json:"start"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return "", err
	}
	c.StartKey = strings.TrimPrefix(c.StartKey, "/")
	if put && c.StartKey != "" {
		c.StartKey = "/" + c.StartKey
	}
	data, err = json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(data), err
}

func (s *relayStore) query(key string, opts storage.ListOptions) (string, url.Values) {
	path, name := s.path(key, !opts.Recursive)
	q := url.Values{}
	set := func(k, v string) {
		if v != "" {
			q.Set(k, v)
		}
	}
	set("resourceVersion", opts.ResourceVersion)
	set("resourceVersionMatch", string(opts.ResourceVersionMatch))
	var fields []string
	if l := opts.Predicate.Label; l != nil {
		set("labelSelector", l.String())
	}
	if f := opts.Predicate.Field; f != nil && !f.Empty() {
		fields = append(fields, f.String())
	}
	if name != "" {
		fields = append(fields, "metadata.name="+name)
	}
	set("fieldSelector", strings.Join(fields, ","))
	if opts.SendInitialEvents != nil { // the REST API insists on the match
		q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
		q.Set("sendInitialEvents", strconv.FormatBool(*opts.SendInitialEvents))
	}
	return path, q
}

func (s *relayStore) open(ctx context.Context, path string, q url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_, raw, err := wire.SplitEnvelope(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %.200s", resp.Status, body)
	}
	status := metav1.Status{}
	if err := status.Unmarshal(raw); err != nil {
		return nil, err
	}
	return nil, &apierrors.StatusError{ErrStatus: status}
}

func (s *relayStore) read(ctx context.Context, path string, q url.Values) ([]byte, error) {
	resp, err := s.open(ctx, path, q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func decode(raw []byte, out runtime.Object) error {
	v := examplev1.Pod{}
	if err := v.Unmarshal(raw); err != nil {
		return err
	}
	*out.(*example.Pod) = example.Pod{}
	return scheme.Convert(&v, out, nil)
}

// Watch implements storage.Interface.
func (s *relayStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	path, q := s.query(key, opts)
	q.Set("watch", "true")
	q.Set("allowWatchBookmarks", strconv.FormatBool(opts.Predicate.AllowWatchBookmarks))
	if end, ok := ctx.Deadline(); ok {
		q.Set("timeoutSeconds", strconv.Itoa(int(math.Ceil(time.Until(end).Seconds()))))
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := s.open(ctx, path, q)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &relayWatch{events: make(chan watch.Event, watchBuffer), cancel: cancel}
	go w.run(ctx, resp.Body)
	return w, nil
}

// watchBuffer is what a client has received and not read yet: client-go and kube-apiserver have such buffers, too.
const watchBuffer = 100

// relayWatch is a watch at a relay.
type relayWatch struct {
	events chan watch.Event
	cancel context.CancelFunc
}

// Stop implements watch.Interface.
func (w *relayWatch) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *relayWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *relayWatch) run(ctx context.Context, body io.ReadCloser) {
	defer close(w.events)
	defer w.cancel()
	defer body.Close()
	in := wire.NewEventReader(body, wire.Protobuf, wire.Kind{})
	for {
		e, err := in.Next()
		if err != nil {
			return
		}
		out := watch.Event{Type: watch.EventType(e.Type)}
		pod := &example.Pod{}
		switch {
		case e.Type == wire.Error:
			out.Object = e.Status
		case e.Object != nil:
			err = decode(e.Object.Raw, pod)
			out.Object = pod
		default:
			pod.ResourceVersion = wire.FormatVersion(e.Version)
			if e.InitialEnd {
				pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			}
			out.Object = pod
		}
		if err != nil {
			out = watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(err).ErrStatus}
		}
		select {
		case w.events <- out:
		case <-ctx.Done():
			return
		}
	}
}
