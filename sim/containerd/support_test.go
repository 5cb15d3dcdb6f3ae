package containerd

import (
	"fmt"
	"io"
	"net/http"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/weir-edge/weir/impl/exchange"
)

func descriptor(d string, size int) ocispec.Descriptor {
	return ocispec.Descriptor{Digest: digest.Digest(d), Size: int64(size)}
}

// asks is a question for a tag.
func asks(ref string) exchange.ImagesAsk { return exchange.ImagesAsk{Tag: ref} }

// known reports whether the desk knows a holder of all that the registry has, but for those that only it has.
func (p *pool) known(r *registry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for d := range r.blobs {
		parsed, err := exchange.ParseDigest(d)
		if err != nil {
			return false
		}
		a, err := p.desk.Exchange("a member without an address", exchange.ImagesAsk{Want: &parsed})
		if err != nil || len(a.From) == 0 || a.From[0].Growing {
			return false
		}
	}
	return true
}

// read reads a blob from the mirror of a node.
func (n *node) read(d, registry string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, n.at.URL+"/v2/app/blobs/"+d+"?ns="+registry, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s", resp.Status)
	}
	return io.ReadAll(resp.Body)
}
