package shelter

import (
	"net/http"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/request"
)

// Observe sees what the cloud has answered to a request of a caller, and learns what the caller may do without the
// cloud.
func (k *Kubelet) Observe(asked *request.Request, who access.Caller, resp *http.Response) {
	if k == nil || who.Kind != access.Bearer && who.Kind != access.ThisNode || !isMeant(asked) {
		return
	}
	code, header := resp.StatusCode, resp.Request.Header
	if code == http.StatusSwitchingProtocols {
		code = http.StatusOK
	}
	all := questions(asked)
	k.Judge.Learn(header, who.Kind == access.ThisNode, all[0], code)
	// Where the cloud does not reach the kubelet, it answers 5xx to a caller that may.
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		return
	}
	for _, a := range all {
		a.Name = ""
		k.Learn(resp.Request.Context(), who, header, a)
	}
}
