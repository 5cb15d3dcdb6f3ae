package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Grant is one thing that a role allows, for all objects or for some by name.
type Grant struct {
	Role     string // "ClusterRole weir:hub", "Role kube-system/weir:manager"
	Verb     string
	Group    string
	Resource string // with the subresource, "nodes/status"; "" if it is of a URL
	URL      string
}

func (g Grant) String() string {
	what := cmp.Or(g.URL, g.Resource)
	if g.Group != "" {
		what += "." + g.Group
	}
	return fmt.Sprintf("%s: %s %s", g.Role, g.Verb, what)
}

// Grants are those of all roles in YAML documents, in order. Other objects are passed over.
func Grants(manifests ...string) (all []Grant, err error) {
	for _, m := range manifests {
		docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(m)), 4<<10)
		for {
			var r rbacv1.ClusterRole // a Role has the same fields
			if err := docs.Decode(&r); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("read a manifest: %w", err)
			}
			switch r.Kind {
			case "ClusterRole":
				all = append(all, grantsOf(r.Kind+" "+r.Name, r.Rules)...)
			case "Role":
				all = append(all, grantsOf(r.Kind+" "+r.Namespace+"/"+r.Name, r.Rules)...)
			}
		}
	}
	return all, nil
}

func grantsOf(role string, rules []rbacv1.PolicyRule) (all []Grant) {
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, url := range r.NonResourceURLs {
				all = append(all, Grant{Role: role, Verb: verb, URL: url})
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					all = append(all, Grant{Role: role, Verb: verb, Group: group, Resource: resource})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Grant) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}
