package client

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// How often and after what time client-go tries to open a watch whose connection broke.
const (
	watchRetries    = 10
	watchRetryAfter = time.Second
)

// jsonAPI reads JSON by itself, as clients in other languages do, and strictly: a field that Kubernetes does not have,
// one that is there twice, and an object of a watch that does not say its kind are malformed.
type jsonAPI struct {
	rest  *rest.RESTClient
	spec  Spec
	rec   *Recording
	codec *json.Serializer
}

func newJSON(r *rest.RESTClient, spec Spec, rec *Recording) *jsonAPI {
	codec := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Strict: true})
	return &jsonAPI{rest: r, spec: spec, rec: rec, codec: codec}
}

func (j *jsonAPI) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	answer := request(j.rest, j.spec, o).Do(ctx)
	if err := answer.Error(); err != nil { // Raw's error does not know the server's Status
		return nil, err
	}
	data, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	list := j.spec.list()
	return list, j.decode(data, list)
}

func (j *jsonAPI) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	body, err := request(j.rest, j.spec, o).Stream(ctx)
	// As rest.Request.Watch does: that a connection broke says nothing of the watch.
	for i := 0; i < watchRetries && (utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)); i++ {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(watchRetryAfter):
		}
		body, err = request(j.rest, j.spec, o).Stream(ctx)
	}
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(
		&jsonEvents{api: j, body: body, decoder: stdjson.NewDecoder(body)},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding"),
	), nil
}

// decode reads data into an object or list that says its kind.
func (j *jsonAPI) decode(data []byte, into runtime.Object) error {
	got, kind, err := j.codec.Decode(data, nil, into)
	switch {
	case err != nil:
	case got != into:
		err = fmt.Errorf("%v where a %T was due", kind, into)
	case into.GetObjectKind().GroupVersionKind().Empty():
		err = fmt.Errorf("a %T that does not say its kind", into)
	}
	if err != nil {
		j.rec.malformed(err)
	}
	return err
}

// jsonEvents are the frames of a watch.
type jsonEvents struct {
	api     *jsonAPI
	body    io.ReadCloser
	decoder *stdjson.Decoder
}

// Decode implements watch.Decoder.
func (e *jsonEvents) Decode() (watch.EventType, runtime.Object, error) {
	var frame metav1.WatchEvent
	if err := e.decoder.Decode(&frame); err != nil {
		var syntax *stdjson.SyntaxError
		if errors.As(err, &syntax) {
			e.api.rec.malformed(err)
		}
		return "", nil, err
	}
	object := e.api.spec.object()
	if watch.EventType(frame.Type) == watch.Error {
		object = &metav1.Status{}
	}
	if err := e.api.decode(frame.Object.Raw, object); err != nil {
		return "", nil, err
	}
	return watch.EventType(frame.Type), object, nil
}

// Close implements watch.Decoder.
func (e *jsonEvents) Close() { _ = e.body.Close() }
