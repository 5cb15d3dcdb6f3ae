package door

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// hopByHop is what a Connection header may name. A proxy drops what it names, so if that could be Authorization, the
// cloud would answer nobody, and the hub would take it for an answer to the token.
var hopByHop = []string{"close", "keep-alive", "upgrade", "te", "http2-settings"}

// illFormed says why a request goes nowhere: the hub could read it otherwise than the cloud. nil: it is in order, and
// has no Connection header but that of an upgrade.
func illFormed(req *http.Request) *apierrors.StatusError {
	if req.URL.Opaque != "" || !strings.HasPrefix(req.URL.Path, "/") {
		return apierrors.NewBadRequest("the request line names no path that begins with a slash")
	}
	upgrade := false
	for _, value := range req.Header["Connection"] {
		for option := range strings.SplitSeq(value, ",") {
			option = strings.ToLower(strings.Trim(option, " \t"))
			if option != "" && !slices.Contains(hopByHop, option) {
				return apierrors.NewBadRequest(fmt.Sprintf("header Connection: %.64q is not to be named there, only %s", option,
					strings.Join(hopByHop, ", ")))
			}
			upgrade = upgrade || option == "upgrade"
		}
	}
	req.Header.Del("Connection")
	if upgrade {
		req.Header.Set("Connection", "Upgrade")
	}
	return nil
}

// clean removes headers by which a front proxy would tell who calls, and from where: nobody here is one.
func clean(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "X-Forwarded-") || name == "X-Real-Ip" ||
			name == "Forwarded" {
			delete(h, name)
		}
	}
}
