package shelter

import (
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// Kubelet is the node's own. Its methods take a nil: that answers nothing.
type Kubelet struct {
	*way
	open limit.Slots // by the name of a user
}

// NewKubelet makes one.
func NewKubelet(c KubeletConfig) *Kubelet {
	return &Kubelet{way: newWay(c), open: limit.Slots{Sum: limit.MaxKubelet, Each: limit.MaxKubeletCaller}}
}

// Take answers a request that the cloud cannot: of a client about a pod of this node, or of the kubelet about the hub.
// Else the request that is returned goes where it would go.
func (k *Kubelet) Take(w *answer.Recorder, req *http.Request, asked *request.Request, who access.Caller) (
	*http.Request, bool) {
	if k == nil {
		return req, false
	}
	if isReview(asked) && who.Kind == access.ThisNode && !access.Impersonates(req.Header) {
		return k.waiting.review(w, req, k.Node)
	}
	if away, _ := k.Away(); !away || !isMeant(asked) {
		return req, false
	}
	w.Route = route
	if refusal := k.serve(w, req, asked, who); refusal != nil {
		answer.Write(w, refusal)
	}
	return req, true
}

// Open is how many streams are open.
func (k *Kubelet) Open() int { return k.open.Held() }

// serve passes a request to the kubelet, or says why not.
func (k *Kubelet) serve(w *answer.Recorder, req *http.Request, asked *request.Request,
	who access.Caller) *apierrors.StatusError {
	user, refusal := k.authorize(req.Header, asked, who)
	if refusal != nil {
		return refusal
	}
	admission := access.AdmissionOf(req.Context())
	admission.Stays(true)
	admission.Proven()
	pod, refusal := k.pod(asked)
	if refusal != nil {
		return refusal
	}
	at, refusal := locate(pod, asked)
	if refusal != nil {
		return refusal
	}
	cert, refusal := k.shows()
	if refusal != nil {
		return refusal
	}
	if k.open.Enter(user) != "" {
		return apierrors.NewTooManyRequests(fmt.Sprintf("this hub has %d streams of its kubelet open at once, %d of one "+
			"caller: end one", limit.MaxKubelet, limit.MaxKubeletCaller), answer.RetryLater)
	}
	defer k.open.Leave(user)
	ctx, done := k.Judge.While(req.Context(), req.Header)
	defer done()
	logger := k.Logger.With("user", user, "pod", pod.Namespace+"/"+pod.Name, "what", asked.Subresource)
	logger.Info("the cloud is away, and a caller is led to the node's own kubelet")
	began := k.Clock.Now()
	defer func() {
		logger.Info("what a caller had at the node's own kubelet is over", "code", w.Code, "took", k.Clock.Since(began))
	}()
	k.forward(w, req.WithContext(ctx), asked, at, cert)
	return nil
}

// authorize says who calls, if the cloud has let the caller do this.
func (k *Kubelet) authorize(header http.Header, asked *request.Request, who access.Caller) (user string,
	refusal *apierrors.StatusError) {
	for _, a := range questions(asked) {
		u, refusal := k.Judge.Authorize(header, who.Kind == access.ThisNode, a)
		if refusal != nil && refusal.ErrStatus.Code == http.StatusServiceUnavailable {
			refusal = apierrors.NewServiceUnavailable(fmt.Sprintf("%s (%s of pods/%s): a caller that did it once through this "+
				"hub, in namespace %s, while the cloud was there, may; on the node, as root, crictl does without",
				refusal.ErrStatus.Message, a.Verb, a.Subresource, a.Namespace))
		}
		if refusal != nil {
			return "", refusal
		}
		user = u.Name
	}
	return user, nil
}

// kubeletOfPods are those that a kubelet watches.
var kubeletOfPods = store.Resource{Version: "v1", Name: "pods"}

// pod is the one that is asked about, if it is of this node.
func (k *Kubelet) pod(asked *request.Request) (*corev1.Pod, *apierrors.StatusError) {
	known := k.Store.Get("kubelet", kubeletOfPods, store.Protobuf, store.Key{Namespace: asked.Namespace, Name: asked.Name})
	pod := &corev1.Pod{}
	var err error
	switch {
	case known.Knowledge == store.KnownAbsent:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, asked.Name)
	case known.Knowledge != store.Known:
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the cloud is away, and pod %s/%s is not known to be on "+
			"this node, whose kubelet alone can be asked", asked.Namespace, asked.Name))
	case known.Form == store.Protobuf:
		err = pod.Unmarshal(known.Object.Raw)
	case known.Form == store.JSON:
		err = json.Unmarshal(known.Object.Raw, pod)
	default:
		err = fmt.Errorf("no pod in form %v", known.Form)
	}
	switch {
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("read pod %s/%s: %w", asked.Namespace, asked.Name, err))
	case pod.Spec.NodeName != k.Node:
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the cloud is away, and pod %s/%s is on node %q: ask the "+
			"hub of that node", asked.Namespace, asked.Name, pod.Spec.NodeName))
	}
	return pod, nil
}
