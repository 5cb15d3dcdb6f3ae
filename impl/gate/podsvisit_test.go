package gate

import "testing"

// TestWithoutTokens: no list of websocket protocols has a token, wherever it stands in the list.
func TestWithoutTokens(t *testing.T) {
	for list, want := range map[string]string{
		"v5.channel.k8s.io": "v5.channel.k8s.io", "": "", " , ": "",
		"base64url.bearer.authorization.k8s.io.YQ,v5.channel.k8s.io":                         "v5.channel.k8s.io",
		"v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.YQ, x":                     "v5.channel.k8s.io, x",
		"base64url.bearer.authorization.k8s.io.YQ":                                           "",
		"base64url.bearer.authorization.k8s.io.YQ, base64url.bearer.authorization.k8s.io.Yg": "",
	} {
		if got := withoutTokens(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
