package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install"
	"github.com/weir-edge/weir/impl/manager/manifests"
)

// least is the first minor version of Kubernetes that serves all that Weir needs.
const least = 36

// named is how many objects a cause names.
const named = 3

// errNone says that there is nothing to look at.
var errNone = errors.New("there is nothing to look at")

// Options say what is looked at.
type Options struct {
	Pre  bool   // before Weir is installed
	Pool string // "": all
	Node string // "": all
	// Machine is the one that the command runs on; nil: it is not looked at. Here looks at it alone, and asks no cluster.
	Machine *install.Installer
	Here    bool
}

// looker looks at a cluster.
type looker struct {
	*commands.Cluster
	Options
	view *commands.View
	disc discovery.DiscoveryInterface
}

// one is a check of something there is once.
type one struct {
	id, about string
	look      func(context.Context, *looker) error
}

// A warning is a cause that keeps nothing from working.
type warning struct{ error }

// A skip is a cause for which something cannot be looked at.
type skip struct{ error }

func warn(format string, args ...any) error { return warning{fmt.Errorf(format, args...)} }

// result is what a check says, by its error.
func result(id, about string, err error) Result {
	r := Result{ID: id, Description: about, Result: OK}
	if err == nil {
		return r
	}
	r.Result, r.Hint = Error, Hints+id
	var w warning
	var s skip
	switch {
	case errors.As(err, &w):
		r.Result = Warning
	case errors.As(err, &s):
		r.Result = Skipped
	}
	r.Cause = strings.Join(strings.Fields(strings.ReplaceAll(fmt.Sprint(err), "\n", "; ")), " ")
	return r
}

var kubernetes = []one{
	{"api", "kube-apiserver answers", checkAPI},
	{"kubernetes-version", fmt.Sprintf("Kubernetes is 1.%d or later", least), checkVersion},
}

var before = []one{
	{"may-install", "you may install definitions, admission policies, roles and a Deployment", checkMayInstall},
	{"nodepool-definition", "no definition of NodePools is there, or one that Weir can use", checkForeign},
	{"not-installed", "Weir is not installed yet", checkNotInstalled},
}

var control = []one{
	{"definitions", "NodePools and Pools are defined", checkDefinitions},
	{"policies", "the admission policies are there, as this version has them", checkPolicies},
	{"manager", "weir-manager runs", checkManager},
	{"manager-leads", "one weir-manager leads", checkLeads},
	{"gate", "weir-gate runs as pools are told", checkGate},
}

func checkAPI(_ context.Context, l *looker) error {
	_, err := l.disc.ServerVersion()
	return err
}

func checkVersion(_ context.Context, l *looker) error {
	v, err := l.disc.ServerVersion()
	if err != nil {
		return skip{err}
	}
	var minor int
	if _, err := fmt.Sscanf(strings.TrimRight(v.Minor, "+"), "%d", &minor); err != nil {
		return skip{fmt.Errorf("it says that it is %q", v.GitVersion)}
	}
	if v.Major == "1" && minor < least {
		return fmt.Errorf("it is %s: it does not serve MutatingAdmissionPolicies, without which pods of pools that fall "+
			"silent are marked as not ready", v.GitVersion)
	}
	return nil
}

func checkMayInstall(ctx context.Context, l *looker) error {
	var not []string
	for _, r := range []struct{ group, resource, namespace string }{
		{
			"apiextensions.k8s.io", "customresourcedefinitions", "",
		}, {"admissionregistration.k8s.io", "validatingadmissionpolicies", ""},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicies", ""}, {"rbac.authorization.k8s.io", "clusterroles", ""},
		{"rbac.authorization.k8s.io", "clusterrolebindings", ""}, {"", "namespaces", ""},
		{"apps", "deployments", contract.ManagerNamespace},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: r.group, Resource: r.resource, Namespace: r.namespace,
			},
		}}
		if err := l.Create(ctx, review); err != nil {
			return skip{err}
		}
		if !review.Status.Allowed {
			not = append(not, r.resource)
		}
	}
	if len(not) > 0 {
		return fmt.Errorf("you may not create %s", strings.Join(not, ", "))
	}
	return nil
}

func definition(ctx context.Context, l *looker, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	err := l.Get(ctx, client.ObjectKey{Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

const (
	nodePoolsName = "nodepools.apps.openyurt.io"
	poolsName     = "pools." + contract.PoolGroup
)

// serves reports whether a definition serves a version.
func serves(o *unstructured.Unstructured, version string) bool {
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		m, ok := v.(map[string]any)
		return ok && m["name"] == version && m["served"] == true
	})
}

func checkForeign(ctx context.Context, l *looker) error {
	o, err := definition(ctx, l, nodePoolsName)
	switch {
	case err != nil:
		return skip{err}
	case o == nil:
		return nil
	case !serves(o, "v1beta2"):
		return fmt.Errorf("%s is there, and does not serve v1beta2: upgrade OpenYurt to 1.6, or remove it", nodePoolsName)
	case o.GetLabels()["app.kubernetes.io/part-of"] != "weir":
		return warn("%s is somebody else's, as OpenYurt's: the chart leaves it alone, and weir-manager keeps NodePools "+
			"when no yurt-manager does", nodePoolsName)
	}
	return nil
}

func checkNotInstalled(_ context.Context, l *looker) error {
	if err := l.view.Failed[commands.Manager]; err != nil {
		return skip{err}
	}
	if l.view.Manager != nil {
		return warn("Deployment kube-system/weir-manager is there: leave out --pre")
	}
	return nil
}

func checkDefinitions(ctx context.Context, l *looker) error {
	for _, d := range [][2]string{{nodePoolsName, "v1beta2"}, {poolsName, "v1alpha1"}} {
		name, version := d[0], d[1]
		o, err := definition(ctx, l, name)
		switch {
		case err != nil:
			return skip{err}
		case o == nil:
			return fmt.Errorf("%s is not there", name)
		case !serves(o, version):
			return fmt.Errorf("%s does not serve %s", name, version)
		}
	}
	return nil
}

func checkPolicies(ctx context.Context, l *looker) error {
	missing := manifests.Missing(ctx, l.Client, l.Scheme())
	if more := len(missing) - named; more > 0 {
		missing = append(missing[:named:named], fmt.Errorf("and so are %d more", more))
	}
	return errors.Join(missing...)
}

func checkManager(_ context.Context, l *looker) error {
	if err := l.view.Failed[commands.Manager]; err != nil {
		return skip{err}
	}
	if l.view.Manager == nil {
		return errors.New("no Deployment kube-system/weir-manager is there")
	}
	return available(l.view.Manager)
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func available(d *appsv1.Deployment) error {
	want := replicas(d)
	switch got := d.Status.AvailableReplicas; {
	case got == 0:
		return fmt.Errorf("none of its %d replicas is available", want)
	case got < want:
		return warn("%d of its %d replicas are available", got, want)
	}
	return nil
}

// checkGate looks at weir-gate beside what pools are told of it. It may run outside the cluster.
func checkGate(_ context.Context, l *looker) error {
	if err := errors.Join(l.view.Failed[commands.Gate], l.view.Failed[commands.LeaderHubs]); err != nil {
		return skip{err}
	}
	told, ways := "", ""
	for _, s := range l.view.LeaderHubs {
		if at := s.Annotations[contract.LeaderHubGate]; at != "" {
			told, ways = at, s.Annotations[contract.LeaderHubGateWays]
		}
	}
	g := l.view.Gate
	switch {
	case g == nil && told == "":
		return errNone
	case g == nil:
		return warn("pools are told of a gate at %s, and no Deployment kube-system/weir-gate is there: it runs elsewhere, "+
			"or --gate of weir-manager names what is gone", told)
	case told == "" && len(l.view.LeaderHubs) > 0:
		return errors.New("no pool is told of it: weir-manager has no --gate, or does not sign (--certificates=sign)")
	}
	if err := available(g); err != nil {
		return err
	}
	if n := strconv.Itoa(int(replicas(g))); ways != "" && ways != n {
		return warn("it has %s replicas, and hubs keep connections to %s: those that are left out answer 503; set "+
			"gate.replicas of the chart, or --gate-ways of weir-manager", n, ways)
	}
	return nil
}

func checkLeads(_ context.Context, l *looker) error {
	if err := l.view.Failed[commands.ManagerLease]; err != nil {
		return skip{err}
	}
	lease := l.view.ManagerLease
	if lease == nil || lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil ||
		*lease.Spec.HolderIdentity == "" {
		return errors.New("the Lease kube-system/weir-manager has no holder: no replica has led yet")
	}
	if age := l.view.Now.Sub(lease.Spec.RenewTime.Time); lease.Spec.LeaseDurationSeconds != nil &&
		age.Seconds() > 2*float64(*lease.Spec.LeaseDurationSeconds) {
		return fmt.Errorf("%s held the Lease last, and has not renewed it for %s", *lease.Spec.HolderIdentity, rounded(age))
	}
	return nil
}
