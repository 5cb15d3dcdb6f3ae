package gate

import (
	"context"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/relay/rest"
)

// buffer is how many bytes of a log go on at once.
const buffer = 32 << 10

// verbs are what the chain has asked about, by the method of a request.
var verbs = map[string]string{http.MethodGet: "get", http.MethodPost: "create"}

// ServeHTTP implements http.Handler. It is to be behind the generic chain, which has asked whether the caller may.
func (h *PodsHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, ok := genericrequest.RequestInfoFrom(req.Context())
	if !ok || !ServesPods(info) {
		rest.WriteError(w, req, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, ""))
		return
	}
	v := newVisit(h, info)
	if user, ok := genericrequest.UserFrom(req.Context()); ok {
		v.user = user.GetName()
	}
	if !h.begin(v) {
		rest.WriteError(w, req, apierrors.NewServiceUnavailable("this gate is ending; try again"))
		return
	}
	defer h.end(v)
	defer v.log()
	if full := h.slots.Enter(v.user); full != "" {
		v.fail(w, req, busy(full))
		return
	}
	defer h.slots.Leave(v.user)
	if err := h.serve(v, w, req); err != nil {
		v.fail(w, req, err)
	}
}

// serve answers a request, or returns why it has not.
func (h *PodsHandler) serve(v *visit, w http.ResponseWriter, req *http.Request) error {
	if verbs[req.Method] != v.info.Verb || v.info.Verb == "" || v.sub == logs && req.Method != http.MethodGet {
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "pods/" + v.sub}, req.Method)
	}
	if v.sub != logs && v.info.Verb != "create" {
		if err := h.mayCreate(req.Context(), v); err != nil {
			return err
		}
	}
	o, err := optionsOf(v.sub, v.info.Name, req.URL.RawQuery, h.c.CAFile != "")
	if err != nil {
		return err
	}
	pod, err := h.find(req.Context(), v, o)
	if err != nil {
		return err
	}
	address, err := addressOf(v.node)
	if err != nil {
		return err
	}
	to, err := v.request(req, locationOf(pod, v.container, address, o))
	if err != nil {
		return err
	}
	if l, ok := o.(*logOptions); ok {
		v.patient = l.Follow
		return h.logs(v, w, to)
	}
	up := proxy.NewUpgradeAwareHandler(to.URL, v.transport(), false, true, v)
	up.UseLocationHost = true
	up.ServeHTTP(&writer{w, v}, to)
	return nil
}

// mayCreate asks what kube-apiserver asks of an upgrade by GET.
func (h *PodsHandler) mayCreate(ctx context.Context, v *visit) error {
	asked, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	decision, _, err := h.c.Authorizer.Authorize(ctx, creates{asked})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("ask kube-apiserver whether you may create pods/%s: %w", v.sub, err))
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, v.info.Name,
		fmt.Errorf("user %q cannot create resource \"pods/%s\" in API group \"\" in the namespace %q", v.user, v.sub,
			v.info.Namespace))
}

// creates is a question with another verb.
type creates struct{ authorizer.Attributes }

// GetVerb implements authorizer.Attributes.
func (creates) GetVerb() string { return "create" }

// find reads the Pod that is meant, and the Node that it is on.
func (h *PodsHandler) find(ctx context.Context, v *visit, o podOptions) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	pod, err := h.c.Cluster.Pods(v.info.Namespace).Get(ctx, v.info.Name, metav1.GetOptions{})
	if err != nil {
		return nil, unread("Pod "+v.info.Namespace+"/"+v.info.Name, err)
	}
	if v.sub != portForward {
		if v.container, err = containerOf(pod, o.container()); err != nil {
			return nil, err
		}
	}
	if pod.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"pod %s does not have a host assigned: no node runs it yet; kubectl -n %s describe pod %s says why", pod.Name,
			pod.Namespace, pod.Name))
	}
	if v.node, err = h.c.Cluster.Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{}); err != nil {
		return nil, unread("Node "+pod.Spec.NodeName, err)
	}
	return pod, nil
}

// logs passes a log on as it comes.
func (h *PodsHandler) logs(v *visit, w http.ResponseWriter, to *http.Request) error {
	t := v.transport()
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(to)
	if err != nil {
		return v.why(err)
	}
	defer resp.Body.Close()
	if err := v.refused(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return told(v, resp)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	for b := make([]byte, buffer); ; {
		n, err := resp.Body.Read(b)
		if n > 0 {
			if _, gone := w.Write(b[:n]); gone != nil || flush() != nil {
				return nil
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && to.Context().Err() != nil: // the caller has gone
			return nil
		case err != nil:
			v.err = err
			panic(http.ErrAbortHandler) // the caller sees that the log does not end here
		}
	}
}
