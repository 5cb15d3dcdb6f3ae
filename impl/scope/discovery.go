package scope

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
)

const (
	maxDiscovery = 1 << 20 // bytes of what one version of a group has
	findTimeout  = 10 * time.Second
)

// Discovery asks the cloud what a resource is.
type Discovery struct{ Cloud http.RoundTripper }

// Find tells the kind of a custom resource, and whether it has namespaces.
func (d Discovery) Find(ctx context.Context, s directory.Shared) (directory.Shared, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud/apis/"+s.Group+"/"+s.Version, nil)
	if err != nil {
		return s, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", contract.UserAgent)
	resp, err := d.Cloud.RoundTrip(req)
	if err != nil {
		return s, fmt.Errorf("ask the cloud what it is: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDiscovery))
	switch {
	case err != nil:
		return s, fmt.Errorf("ask the cloud what it is: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return s, fmt.Errorf("the cloud does not serve %s/%s", s.Group, s.Version)
	case resp.StatusCode != http.StatusOK:
		return s, fmt.Errorf("ask the cloud what it is: answer %s", resp.Status)
	}
	var all metav1.APIResourceList
	if err := json.Unmarshal(body, &all); err != nil {
		return s, fmt.Errorf("read what the cloud serves of %s/%s: %w", s.Group, s.Version, err)
	}
	for _, r := range all.APIResources {
		if r.Name == s.Resource {
			if s.Kind = r.Kind; !r.Namespaced {
				s.Kind += "!"
			}
			return s, nil
		}
	}
	return s, fmt.Errorf("the cloud serves no %s in %s/%s", s.Resource, s.Group, s.Version)
}
