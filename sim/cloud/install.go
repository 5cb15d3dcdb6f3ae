package cloud

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	managermanifests "github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/revocation"
)

//go:embed manifests
var manifests embed.FS

const (
	fieldManager    = "weir-testbed"
	installPatience = time.Minute
)

// install applies the manifests and waits until their grants have effect.
func (c *Cloud) install(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	files, err := manifests.ReadDir("manifests")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	for _, f := range files {
		data, err := manifests.ReadFile("manifests/" + f.Name())
		if err != nil {
			return fmt.Errorf("install: %w", err)
		}
		if err := c.Apply(ctx, data); err != nil {
			return fmt.Errorf("install %s: %w", f.Name(), err)
		}
	}
	if err := c.Apply(ctx, []byte(managermanifests.Hubs())); err != nil {
		return fmt.Errorf("install roles of hubs: %w", err)
	}
	for _, client := range Clients {
		if err := c.waitGrant(ctx, "system:serviceaccount:"+clientNamespace+":"+client.Name, client.probe); err != nil {
			return err
		}
	}
	return nil
}

// GrantHubs lets the hubs of a pool read what weir-manager lets them, by its own code, and waits until that has effect.
func (c *Cloud) GrantHubs(ctx context.Context, pool string, nodes ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	_, err := c.client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: contract.KeyNamespace}},
		metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	direct, err := client.New(c.admin, client.Options{})
	if err != nil {
		return err
	}
	if err := revocation.Grant(ctx, &revocation.Config{Client: direct, Reader: direct}, pool, nodes); err != nil ||
		len(nodes) == 0 {
		return err
	}
	return c.waitGrant(ctx, contract.HubUserPrefix+pool+":"+nodes[len(nodes)-1],
		schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"})
}

// Apply applies the objects of a YAML stream on the server's side, as kubectl apply --server-side does.
func (c *Cloud) Apply(ctx context.Context, manifest []byte) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("create dynamic client: %w", err)
	}
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		var object unstructured.Unstructured
		switch err := docs.Decode(&object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read manifest: %w", err)
		case len(object.Object) == 0:
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		name := object.GetKind() + " " + object.GetName()
		err := c.retry(ctx, func() error {
			_, err := client.Resource(resource).Namespace(object.GetNamespace()).Apply(ctx, object.GetName(), &object,
				metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
			return err
		})
		if err != nil {
			return fmt.Errorf("apply %s: %w", name, err)
		}
	}
}

// retry repeats what fails because a namespace of the system is not there yet: the apiserver makes those soon after
// it is ready.
func (c *Cloud) retry(ctx context.Context, do func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := do()
		if !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// waitGrant waits until the authorizer has seen the grants of a user, who may watch something by them.
func (c *Cloud) waitGrant(ctx context.Context, user string, probe schema.GroupResource) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   user,
				Groups: []string{"system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "watch", Group: probe.Group, Resource: probe.Resource,
				},
			},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return fmt.Errorf("review the grants of %s: %w", user, err)
		case review.Status.Allowed:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s may still not watch %s: %w", user, probe.Resource, ctx.Err())
		}
	}
}
