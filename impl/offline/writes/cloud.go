package writes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

const (
	// callTimeout is of one request to the cloud: a link that delays a status for longer carries none.
	callTimeout = 10 * time.Second
	maxAnswer   = 16 << 20
	// stubborn is how long a 403 is asked about again before it counts: kube-apiserver answers it, too, while its
	// admission plugins have not read what they need after a start.
	stubborn = 10 * time.Second
	// firstRetry is the first pause between two tries.
	firstRetry = time.Second
	// manager is whose the fields are that are pushed.
	manager = "fieldManager=kubelet"
)

// cloud is the cloud's API as a queue needs it, with the rights of a node. It serves one drain.
type cloud struct {
	Config
	forbidden time.Time // since when 403 was answered
	final     bool      // 403 counts
}

var _ queue.Cloud = (*cloud)(nil)

func pathOf(t queue.Target) string {
	switch t.Kind {
	case queue.NodeStatus, queue.NodeMetadata:
		return "/api/v1/nodes/" + url.PathEscape(t.Name)
	case queue.PodStatus:
		return "/api/v1/namespaces/" + url.PathEscape(t.Namespace) + "/pods/" + url.PathEscape(t.Name)
	}
	return eventsPath(t) + "/" + url.PathEscape(t.Name)
}

func eventsPath(t queue.Target) string {
	if t.Kind == queue.GroupEvent {
		return "/apis/events.k8s.io/v1/namespaces/" + url.PathEscape(t.Namespace) + "/events"
	}
	return "/api/v1/namespaces/" + url.PathEscape(t.Namespace) + "/events"
}

// Get implements queue.Cloud.
func (c *cloud) Get(ctx context.Context, t queue.Target) ([]byte, error) {
	switch t.Kind {
	case queue.PodStatus:
		return c.pod(ctx, t)
	case queue.Event, queue.GroupEvent:
		// A node may patch events, and not get them. A patch of nothing writes nothing, and answers with the event.
		return c.one(ctx, call{http.MethodPatch, pathOf(t), mediaJSON, "application/merge-patch+json", []byte("{}")})
	}
	return c.one(ctx, call{http.MethodGet, pathOf(t), mediaJSON, "", nil})
}

func (c *cloud) one(ctx context.Context, in call) ([]byte, error) {
	code, body, err := c.do(ctx, in)
	if err != nil || code == http.StatusNotFound {
		return nil, err
	}
	return body, nil
}

// pod reads a pod of this node as a list of one or none: a node that gets a pod that is gone, or another node's, is
// answered 403.
func (c *cloud) pod(ctx context.Context, t queue.Target) ([]byte, error) {
	q := url.Values{"fieldSelector": {"metadata.name=" + t.Name + ",spec.nodeName=" + c.Node}}
	code, body, err := c.do(ctx, call{
		http.MethodGet, "/api/v1/namespaces/" + url.PathEscape(t.Namespace) + "/pods?" + q.Encode(), mediaJSON, "", nil,
	})
	if err != nil || code == http.StatusNotFound {
		return nil, err
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read the list of pods: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return list.Items[0], nil
}

// Update implements queue.Cloud. What the cloud answers is what the store has from now on: the entry that showed it
// goes.
func (c *cloud) Update(ctx context.Context, t queue.Target, body []byte) error {
	path := pathOf(t)
	if t.Kind == queue.NodeStatus || t.Kind == queue.NodeMetadata || t.Kind == queue.PodStatus {
		path += "/status"
	}
	code, answer, err := c.do(ctx, call{http.MethodPut, path + "?" + manager, mediaProtobuf, mediaJSON, body})
	switch {
	case err != nil:
		return err
	case code == http.StatusNotFound, code == http.StatusConflict: // Get tells which
		return queue.ErrConflict
	}
	return c.keep(t, answer)
}

func (c *cloud) keep(t queue.Target, answer []byte) error {
	r := nodes()
	switch t.Kind {
	case queue.PodStatus:
		r = pods()
	case queue.Event, queue.GroupEvent:
		return nil
	}
	kind, raw, err := wire.SplitEnvelope(answer)
	if err != nil {
		return fmt.Errorf("read the answer to a write of %v: %w", t, err)
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		return fmt.Errorf("read the answer to a write of %v: %w", t, err)
	}
	c.Store.Written(r, store.Protobuf, kind, o)
	return nil
}

// Create implements queue.Cloud.
func (c *cloud) Create(ctx context.Context, t queue.Target, body []byte) error {
	code, _, err := c.do(ctx, call{http.MethodPost, eventsPath(t) + "?" + manager, mediaProtobuf, mediaJSON, body})
	switch {
	case err != nil:
		return err
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: there is no namespace %s", queue.ErrRefused, t.Namespace)
	case code == http.StatusConflict:
		return queue.ErrExists
	}
	return nil
}

// call is a request to the cloud.
type call struct {
	method, uri, accept, contentType string
	body                             []byte
}

// do sends a request; without an error the code is 404, 409 or a success.
func (c *cloud) do(ctx context.Context, in call) (code int, body []byte, err error) {
	for {
		var s *metav1.Status
		code, body, s, err = c.send(ctx, in)
		switch {
		case err != nil, code < 300, code == http.StatusNotFound, code == http.StatusConflict:
			return code, body, err
		case code == http.StatusForbidden:
			if c.insist(ctx, s) {
				continue
			}
			if ctx.Err() != nil {
				return 0, nil, ctx.Err()
			}
			return 0, nil, fmt.Errorf("%w: %s", queue.ErrRefused, s.Message)
		case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity, code == http.StatusRequestEntityTooLarge,
			code == http.StatusMethodNotAllowed, code == http.StatusUnsupportedMediaType:
			return 0, nil, fmt.Errorf("%w: %s", queue.ErrRefused, s.Message)
		}
		return 0, nil, fmt.Errorf("%s %s: %d %s", in.method, in.uri, code, s.Message)
	}
}

// insist waits before a request that was answered 403 is sent again; false if it is not worth it.
func (c *cloud) insist(ctx context.Context, s *metav1.Status) bool {
	ending := s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == corev1.NamespaceTerminatingCause
	})
	if c.forbidden.IsZero() {
		c.forbidden = c.Clock.Now()
	}
	c.final = c.final || c.Clock.Since(c.forbidden) >= stubborn
	if ending || c.final {
		return false
	}
	select {
	case <-c.Clock.After(firstRetry):
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *cloud) send(ctx context.Context, in call) (code int, body []byte, s *metav1.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, in.method, "https://cloud"+in.uri, bytes.NewReader(in.body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", in.accept)
	if in.contentType != "" {
		req.Header.Set("Content-Type", in.contentType)
	}
	resp, err := c.Cloud.RoundTrip(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%s %s: %w", in.method, in.uri, err)
	}
	return resp.StatusCode, body, statusOf(resp, body), nil
}

// statusOf reads the Status of an answer that is no success.
func statusOf(resp *http.Response, body []byte) *metav1.Status {
	s := &metav1.Status{}
	if resp.StatusCode < 300 {
		return s
	}
	err := json.Unmarshal(body, s)
	if _, raw, split := wire.SplitEnvelope(body); split == nil {
		err = s.Unmarshal(raw)
	}
	if err != nil || s.Message == "" {
		s.Message = http.StatusText(resp.StatusCode)
	}
	return s
}
