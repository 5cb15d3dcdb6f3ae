package uplink

import (
	"net/http"
	"strings"
)

// WebSocketToken begins the protocol by which browsers send a token (kube-apiserver's
// authentication/request/websocket).
const WebSocketToken = "base64url.bearer.authorization.k8s.io."

// MeansToken reports whether a request means to show a token: then it is not its certificate's.
func MeansToken(h http.Header) bool { return len(h["Authorization"]) > 0 || hasProtocolToken(h) }

// HasToken reports whether kube-apiserver finds a token in a request. What it does not take for one makes the request
// anonymous, and it ends the HTTP/2 connection of such a request.
func HasToken(h http.Header) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if strings.EqualFold(scheme, "bearer") && token != "" && !strings.HasPrefix(token, " ") {
		return true
	}
	return len(h["Upgrade"]) > 0 && hasProtocolToken(h)
}

func hasProtocolToken(h http.Header) bool {
	for _, v := range h["Sec-Websocket-Protocol"] {
		if strings.Contains(v, WebSocketToken) {
			return true
		}
	}
	return false
}
