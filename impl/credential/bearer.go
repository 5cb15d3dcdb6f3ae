package credential

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/disk"
)

const maxBootstrapToken = 1 << 10 // bytes of a file of one

// Bearer shows the token With in each request.
type Bearer struct {
	With string
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b Bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.With)
	return b.RoundTripper.RoundTrip(req)
}

var bootstrapToken = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// BootstrapToken reads a bootstrap token, by which a hub joins that holds nothing yet. Its value is in no error.
func BootstrapToken(path string) (string, error) {
	text, err := disk.ReadFile(path, maxBootstrapToken)
	if err != nil {
		return "", cli.Usage("bootstrap-token in --etc-dir", path, err.Error())
	}
	token := strings.TrimSpace(string(text))
	if !bootstrapToken.MatchString(token) {
		return "", cli.Usage("bootstrap-token in --etc-dir", path,
			"a file of one bootstrap token, as in abcdef.0123456789abcdef")
	}
	return token, nil
}
