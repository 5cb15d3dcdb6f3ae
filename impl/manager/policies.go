package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/manager/manifests"
)

// recheck is how often the policies are looked at, and retold what is missing.
const recheck = time.Minute

// policies looks whether the admission policies are in the cluster as this version needs them. It changes none: who may do that may do
// anything in a cluster.
type policies struct {
	reader  client.Reader // not from the cache
	scheme  *runtime.Scheme
	clock   clock.WithTicker
	metrics *metrics
	log     *slog.Logger

	state atomic.Pointer[error] // nil: not looked yet
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *policies) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (p *policies) Start(ctx context.Context) error {
	ticker := p.clock.NewTicker(recheck)
	defer ticker.Stop()
	for {
		missing := p.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		p.metrics.missing.Set(float64(len(missing)))
		if err := p.note(missing); err != nil {
			p.log.Error("the cluster lacks what keeps pods; apply the output of weir-manager --print-manifests", "missing", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// note keeps what is missing for check.
func (p *policies) note(missing []error) error {
	err := errors.Join(missing...)
	p.state.Store(&err)
	return err
}

// check is for readiness: nothing may be missing.
func (p *policies) check(*http.Request) error {
	if s := p.state.Load(); s != nil {
		return *s
	}
	return errors.New("the admission policies were not looked at yet")
}

// look compares what is in the cluster with the manifests, and tells what differs.
func (p *policies) look(ctx context.Context) []error {
	decoder := serializer.NewCodecFactory(p.scheme, serializer.EnableStrict).UniversalDeserializer()
	var missing []error
	for _, doc := range strings.Split(manifests.Policies(), "\n---\n") {
		o, kind, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			return []error{fmt.Errorf("read manifests: %w", err)} // a test decodes them too
		}
		want := o.(client.Object)
		got := want.DeepCopyObject().(client.Object)
		switch err := p.reader.Get(ctx, client.ObjectKeyFromObject(want), got); {
		case meta.IsNoMatchError(err):
			missing = append(missing, fmt.Errorf("%s %s: this Kubernetes does not serve it, 1.36 is the first that does", kind.Kind, want.GetName()))
		case apierrors.IsNotFound(err):
			missing = append(missing, fmt.Errorf("%s %s does not exist", kind.Kind, want.GetName()))
		case err != nil:
			missing = append(missing, fmt.Errorf("%s %s: %w", kind.Kind, want.GetName(), err))
		case !same(want, got):
			missing = append(missing, fmt.Errorf("%s %s is not that of this version", kind.Kind, want.GetName()))
		}
	}
	return missing
}

// same compares specs; what a manifest does not say may be as the API's defaults are.
func same(want, got client.Object) bool {
	switch w := want.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.ValidatingAdmissionPolicy).Spec)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec)
	case *admissionv1.MutatingAdmissionPolicy:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.MutatingAdmissionPolicy).Spec)
	case *admissionv1.MutatingAdmissionPolicyBinding:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.MutatingAdmissionPolicyBinding).Spec)
	}
	return true
}
