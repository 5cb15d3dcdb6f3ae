package images

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/exchange"
)

const hexes = "abababababababababababababababababababababababababababababababab"

// TestReference: what a path says, and what is wrong with it.
func TestReference(t *testing.T) {
	d, err := exchange.ParseDigest("sha256:" + hexes)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]reference{
		"/v2/library/app/manifests/v1?ns=docker.io":    {"docker.io", "library/app", "v1", exchange.Digest{}, true},
		"/v2/app/manifests/sha256:" + hexes:            {repository: "app", digest: d, manifest: true},
		"/v2/app/blobs/sha256:" + hexes + "?ns=r:5000": {registry: "r:5000", repository: "app", digest: d},
		"/v2/a/blobs/b/manifests/v1?ns=[::1]:5000":     {"[::1]:5000", "a/blobs/b", "v1", exchange.Digest{}, true},
	} {
		got, err := read(t, path)
		if err != nil || got != want {
			t.Errorf("%s: %+v, want %+v: %v", path, got, want, err)
		}
	}
	for path, says := range map[string]string{
		"/v1/app/manifests/v1":                              "want /v2/",
		"/v2/app/tags/list":                                 "want manifests or blobs",
		"/v2/App/manifests/v1":                              "want small letters",
		"/v2/../app/manifests/v1":                           "want small letters",
		"/v2//manifests/v1":                                 "want small letters",
		"/v2/" + strings.Repeat("a", 256) + "/manifests/v1": "255 bytes at most",
		"/v2/app/manifests/v 1":                             "want letters",
		"/v2/app/manifests/" + strings.Repeat("v", 129):     "128 bytes at most",
		"/v2/app/blobs/v1":                                  "want sha256:",
		"/v2/app/blobs/sha256:" + strings.ToUpper(hexes):    "want sha256:",
		"/v2/app/blobs/sha512:" + hexes + hexes:             "want sha256:",
		"/v2/app/blobs/sha256:../" + hexes[3:]:              "want sha256:",
		"/v2/app/manifests/v1?ns=a/b":                       "the host of a registry",
		"/v2/app/manifests/v1?ns=a b":                       "the host of a registry",
	} {
		_, err := read(t, path)
		if wrong := (*nameError)(nil); !errors.As(err, &wrong) || !strings.Contains(wrong.message, says) {
			t.Errorf("%s: %v, want %s", path, err, says)
		}
	}
}

func read(t *testing.T, path string) (reference, error) {
	t.Helper()
	u, err := url.Parse("http://127.0.0.1" + strings.ReplaceAll(path, " ", "%20"))
	if err != nil {
		t.Fatal(err)
	}
	return parseReference(u)
}

func FuzzReference(f *testing.F) {
	f.Add("/v2/library/app/manifests/v1", "docker.io")
	f.Add("/v2/app/blobs/sha256:"+hexes, "[::1]:5000")
	f.Add("/v2/../../manifests/blobs/sha256:..", "a:99999999")
	host := regexp.MustCompile(`^[][0-9a-zA-Z.:-]*$`)
	f.Fuzz(func(t *testing.T, path, ns string) {
		r, err := parseReference(&url.URL{Path: path, RawQuery: url.Values{"ns": {ns}}.Encode()})
		if err != nil {
			return
		}
		if strings.Contains(r.repository, "..") || !host.MatchString(r.registry) || len(r.name()) > 1000 {
			t.Errorf("%q %q: %+v", path, ns, r)
		}
		if r.tag != "" && r.registry != "" && len(r.name()) <= 512 && exchange.CheckTag(r.name()) != nil {
			t.Errorf("%q %q: a desk refuses %q", path, ns, r.name())
		}
	})
}

func FuzzRange(f *testing.F) {
	f.Add("bytes=0-")
	f.Add("bytes=1-2,3-4")
	f.Add("bytes=-5")
	f.Fuzz(func(t *testing.T, header string) {
		if checkRange(header) == nil && strings.ContainsAny(header, ", \r\n") {
			t.Errorf("%q is taken", header)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"mediaType":"` + ociIndex + `","manifests":[{"digest":"sha256:` + hexes + `"}]}`))
	f.Add([]byte(`{"schemaVersion":2,"config":{},"layers":[]}`))
	f.Add([]byte(`{"schemaVersion":1,"fsLayers":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		media, err := typeOf(body)
		if (err == nil) == (media == "") {
			t.Errorf("%q: %q, %v", body, media, err)
		}
	})
}
