package filter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	memberPeriod = 5 * time.Minute
	memberRetry  = 30 * time.Second
	maxMembers   = 8 << 20 // bytes of their metadata
	asMetadata   = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Run keeps the members of the pool known until ctx ends.
func (f *Filters) Run(ctx context.Context) error {
	needed := false
	for u := range f.rules {
		needed = needed || u.resource == slicesOf
	}
	if !needed {
		<-ctx.Done()
		return nil
	}
	told := ""
	for {
		wait := memberPeriod
		names, err := f.listMembers(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it ends as it should
		case err != nil:
			wait = memberRetry
			if err.Error() != told {
				f.Logger.Warn("cannot list the nodes of the pool, for the topology of Services; what was known stays in use",
					"pool", f.Pool, "err", err)
			}
			told = err.Error()
		default:
			told = ""
			f.setMembers(names)
		}
		select {
		case <-ctx.Done():
		case <-f.Clock.After(wait + time.Duration((f.Random()-0.5)*0.2*float64(wait))):
		}
	}
}

func (f *Filters) listMembers(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	q := url.Values{"labelSelector": {contract.NodePoolLabel + "=" + f.Pool}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud/api/v1/nodes?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", asMetadata)
	resp, err := f.Cloud.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMembers))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list nodes: %s", resp.Status)
	}
	_, raw, err := wire.SplitEnvelope(body)
	if err != nil {
		return nil, err
	}
	var list metav1.PartialObjectMetadataList
	if err := list.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names, nil
}
