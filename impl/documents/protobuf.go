package documents

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// compact is Accept in protobuf, which is half as long as JSON.
const compact = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

const (
	jsonType  = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	protoType = "application/vnd.kubernetes.protobuf"
)

var errLossy = errors.New("the JSON made of the cloud's protobuf does not have the digest that the cloud states")

// ETagOf is what kube-apiserver states as the ETag of a document, which is the digest of its JSON without kind and
// version; "" if it is none. Fields that are not in the types here count as well.
func ETagOf(body []byte) string {
	rest, ok := bytes.CutPrefix(body, []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/`))
	if !ok {
		return ""
	}
	version, rest, ok := bytes.Cut(bytes.TrimSuffix(rest, []byte("\n")), []byte(`",`))
	if !ok || len(version) > 16 {
		return ""
	}
	sum := sha512.New()
	_, _ = sum.Write([]byte("{"))
	_, _ = sum.Write(rest)
	return fmt.Sprintf(`"%X"`, sum.Sum(nil))
}

// ErrForged says that a document is not what its ETag says.
var ErrForged = errors.New("the document is not what its ETag says")

// Check reports whether a copy is what its ETag says, as far as ETags say anything: of API discovery.
func Check(k Key, d *Document) error {
	if slices.Contains(Paths, k.Path) && (d.ETag == "" || ETagOf(d.Body) != d.ETag) {
		return fmt.Errorf("%s: %w", k.Path, ErrForged)
	}
	return nil
}

// transcode makes the JSON that kube-apiserver would have sent. It proves that nothing was lost: the ETag is a digest
// of the document as JSON, whatever encoding it is sent in (apiserver, endpoints/discovery/aggregated/etag.go).
func transcode(body []byte, etag string) ([]byte, error) {
	kind, raw, err := wire.SplitEnvelope(body)
	if err != nil {
		return nil, err
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := list.Unmarshal(raw); err != nil {
		return nil, err
	}
	bare, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	if fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(bare))) != etag {
		return nil, errLossy
	}
	list.APIVersion, list.Kind = kind.APIVersion, kind.Kind
	full, err := json.Marshal(list)
	return append(full, '\n'), err
}

// compactRequest asks for a document in protobuf.
func compactRequest(req *http.Request) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", compact)
	req.Header.Set("Accept-Encoding", "gzip") // kube-apiserver compresses above 128 kB
	return req
}

// expand makes a Document of the answer to a compactRequest. lost tells that the answer did not arrive whole; any other
// error is why the document has to be asked for as it is wanted.
func expand(resp *http.Response) (d *Document, lost bool, err error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	if err != nil {
		return nil, true, err
	}
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), protoType) {
		return nil, false, fmt.Errorf("the cloud answers %s in %q", resp.Status, resp.Header.Get("Content-Type"))
	}
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, false, err
		}
		if body, err = io.ReadAll(io.LimitReader(z, MaxBody)); err != nil {
			return nil, false, err
		}
	}
	etag := resp.Header.Get("Etag")
	full, err := transcode(body, etag)
	if err != nil {
		return nil, false, err
	}
	return &Document{ETag: etag, ContentType: jsonType, Body: full}, false, nil
}
