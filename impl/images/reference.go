package images

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/weir-edge/weir/impl/exchange"
)

// Names, as the OCI distribution specification has them. A registry is the host of a reference.
var (
	registries   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]{1,5})?$|^\[[0-9a-fA-F:]+\](:[0-9]{1,5})?$`)
	repositories = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tags         = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
)

// maxName bounds registry and repository, each: the specification wants 255 with a host.
const maxName = 255

// reference is what a request is about.
type reference struct {
	registry   string // "": the client did not say
	repository string
	tag        string // "": digest says it
	digest     exchange.Digest
	manifest   bool // a manifest or an index; else a blob
}

// name is the tag as desks have it.
func (r reference) name() string { return r.registry + "/" + r.repository + ":" + r.tag }

// nameError says what is wrong with a path.
type nameError struct{ code, message string }

func (e *nameError) Error() string { return e.message }

// Codes of errors, as the OCI distribution specification has them.
const (
	codeName     = "NAME_INVALID"
	codeDigest   = "DIGEST_INVALID"
	codeManifest = "MANIFEST_UNKNOWN"
	codeBlob     = "BLOB_UNKNOWN"
	codeDenied   = "DENIED"
	codeUnable   = "UNSUPPORTED"
	codeMany     = "TOOMANYREQUESTS"
)

// parseReference reads the path and the query of a request below /v2/.
func parseReference(u *url.URL) (r reference, err error) {
	fail := func(code, format string, args ...any) (reference, error) {
		return reference{}, &nameError{code, fmt.Sprintf(format, args...)}
	}
	path, ok := strings.CutPrefix(u.Path, "/v2/")
	if !ok {
		return fail(codeName, "path %.200q: want /v2/<name>/manifests/<tag or digest> or /v2/<name>/blobs/<digest>", u.Path)
	}
	i := max(strings.LastIndex(path, "/manifests/"), strings.LastIndex(path, "/blobs/"))
	if i < 0 {
		return fail(codeName, "path %.200q: want manifests or blobs behind the name", u.Path)
	}
	kind, last, _ := strings.Cut(path[i+1:], "/")
	r.repository, r.manifest = path[:i], kind == "manifests"
	if len(r.repository) > maxName || !repositories.MatchString(r.repository) {
		return fail(codeName, "name %.200q: want small letters, digits and . _ - between them, %d bytes at most",
			r.repository, maxName)
	}
	if r.registry = u.Query().Get("ns"); r.registry != "" &&
		(len(r.registry) > maxName || !registries.MatchString(r.registry)) {
		return fail(codeName, "ns %.200q: want the host of a registry, and maybe a port", r.registry)
	}
	if r.manifest && !strings.Contains(last, ":") {
		if !tags.MatchString(last) {
			return fail(codeName, "tag %.200q: want letters, digits and . _ -, 128 bytes at most", last)
		}
		r.tag = last
		return r, nil
	}
	if r.digest, err = exchange.ParseDigest(last); err != nil {
		return fail(codeDigest, "%v", err)
	}
	return r, nil
}
