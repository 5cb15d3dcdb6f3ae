package coordinator

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/lead"
	"github.com/weir-edge/weir/impl/limit"
)

// leases is the REST storage of Leases.
type leases struct {
	*registry.Store
	authorizer authorizer.Authorizer
	election   *lead.Election
}

func newLeases(t *types, options generic.RESTOptionsGetter, a authorizer.Authorizer) (*leases, error) {
	resource := coordinationv1.Resource("leases")
	strategy := leaseStrategy{ObjectTyper: t.scheme, NameGenerator: names.SimpleNameGenerator}
	s := &registry.Store{
		NewFunc:                   func() runtime.Object { return &coordinationv1.Lease{} },
		NewListFunc:               func() runtime.Object { return &coordinationv1.LeaseList{} },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: coordinationv1.Resource("lease"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		TableConvertor:            leaseTable{rest.NewDefaultTableConvertor(resource)},
	}
	if err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, err
	}
	return &leases{Store: s, authorizer: a}, nil
}

// Create asks once more whether the caller may: when a POST was authorized, the name inside its body was not known.
func (l *leases) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	o *metav1.CreateOptions) (runtime.Object, error) {
	u, _ := genericrequest.UserFrom(ctx)
	lease := obj.(*coordinationv1.Lease)
	a := authorizer.AttributesRecord{
		User: u, Verb: "create", ResourceRequest: true, APIGroup: coordinationv1.GroupName, APIVersion: "v1",
		Resource:  "leases",
		Namespace: genericrequest.NamespaceValue(ctx), Name: lease.Name,
	}
	if a.Name == "" { // generateName: whatever comes out was granted to nobody
		a.Name = lease.GenerateName + "?"
	}
	if d, reason, _ := l.authorizer.Authorize(ctx, a); d != authorizer.DecisionAllow {
		return nil, responsewriters.ForbiddenStatusError(a, reason)
	}
	return l.Store.Create(ctx, obj, l.checked(validate), o)
}

// Update lets the election decide, inside the write that is on condition of what they saw.
func (l *leases) Update(
	ctx context.Context, name string, obj rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc,
	forceCreate bool, o *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	check := func(ctx context.Context, obj, old runtime.Object) error {
		if err := l.election.Check(ctx, caller(ctx), obj.(*coordinationv1.Lease), old.(*coordinationv1.Lease)); err != nil {
			return err
		}
		return update(ctx, obj, old)
	}
	return l.Store.Update(ctx, name, obj, l.checked(create), check, forceCreate, o)
}

// checked lets the election decide about a Lease that is created.
func (l *leases) checked(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := l.election.Check(ctx, caller(ctx), obj.(*coordinationv1.Lease), nil); err != nil {
			return err
		}
		return validate(ctx, obj)
	}
}

func caller(ctx context.Context) lead.LeaseCaller {
	u, _ := genericrequest.UserFrom(ctx)
	return lead.LeaseCaller{Node: authz.NodeOf(u), Groups: u.GetGroups(), Operates: authz.Operates(u), Near: isNear(ctx)}
}

// leaseStrategy validates as kube-apiserver does. It implements rest.RESTCreateStrategy and rest.RESTUpdateStrategy.
type leaseStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (leaseStrategy) NamespaceScoped() bool                                            { return true }
func (leaseStrategy) PrepareForCreate(_ context.Context, obj runtime.Object)           { bare(obj) }
func (leaseStrategy) PrepareForUpdate(_ context.Context, obj, _ runtime.Object)        { bare(obj) }
func (leaseStrategy) Canonicalize(runtime.Object)                                      {}
func (leaseStrategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (leaseStrategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }
func (leaseStrategy) AllowCreateOnUpdate(context.Context) bool                         { return true }
func (leaseStrategy) AllowUnconditionalUpdate(context.Context) bool                    { return false }

func (leaseStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	l := obj.(*coordinationv1.Lease)
	errs := validation.ValidateObjectMeta(&l.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateLeaseSpec(l, field.NewPath("spec"))...)
}

func (leaseStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	l, was := obj.(*coordinationv1.Lease), old.(*coordinationv1.Lease)
	errs := validation.ValidateObjectMetaUpdate(&l.ObjectMeta, &was.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateLeaseSpec(l, field.NewPath("spec"))...)
}

// bare takes out what nobody needs of a Lease here, and what grows: each manager of a server-side apply stays among the
// managed fields.
func bare(obj runtime.Object) {
	l := obj.(*coordinationv1.Lease)
	l.ManagedFields, l.GenerateName, l.SelfLink = nil, "", ""
}

func validateLeaseSpec(l *coordinationv1.Lease, path *field.Path) (errs field.ErrorList) {
	if n := l.Size(); n > limit.MaxLease {
		errs = append(errs, field.Invalid(nil, fmt.Sprintf("%d bytes", n),
			fmt.Sprintf("a Lease of a pool has at most %d bytes", limit.MaxLease)))
	}
	s, most := &l.Spec, int32(contract.MaxLeaseDuration/time.Second)
	switch d := s.LeaseDurationSeconds; {
	case d == nil:
	case *d <= 0:
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	case *d > most && l.Namespace == contract.LeaseNamespace:
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, fmt.Sprintf("must be at most %d", most)))
	}
	if n := s.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if s.Strategy != nil || s.PreferredHolder != nil {
		errs = append(errs,
			field.Forbidden(path.Child("strategy"), "coordinated leader election is not served by a pool's coordinator"))
	}
	return errs
}

// leaseTable prints NAME, HOLDER and AGE, as kube-apiserver does.
type leaseTable struct{ rest.TableConvertor }

func (t leaseTable) ConvertToTable(ctx context.Context, obj, opts runtime.Object) (*metav1.Table, error) {
	table, err := t.TableConvertor.ConvertToTable(ctx, obj, opts)
	if err != nil {
		return nil, err
	}
	if len(table.ColumnDefinitions) > 0 {
		meta, spec := metav1.ObjectMeta{}.SwaggerDoc(), coordinationv1.LeaseSpec{}.SwaggerDoc()
		table.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: meta["name"]},
			{Name: "Holder", Type: "string", Description: spec["holderIdentity"]},
			{Name: "Age", Type: "string", Description: meta["creationTimestamp"]},
		}
	}
	for i := range table.Rows {
		if l, ok := table.Rows[i].Object.Object.(*coordinationv1.Lease); ok {
			table.Rows[i].Cells = []any{l.Name, lead.HolderOf(l), age(l.CreationTimestamp)}
		}
	}
	return table, nil
}

func age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}
