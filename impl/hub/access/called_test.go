package access

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/weir-edge/weir/impl/hub/nodelocal"
)

// boundTo is a token that says that it is bound to a pod; "": to none.
func boundTo(subject, name string) http.Header {
	pod := ""
	if name != "" {
		pod = fmt.Sprintf(`,"pod":{"name":%q,"uid":"uid-%s"}`, name, name)
	}
	payload := base64.RawURLEncoding.EncodeToString(
		fmt.Appendf(nil, `{"sub":%q,"kubernetes.io":{"namespace":"default"%s}}`, subject, pod))
	return http.Header{"Authorization": {"Bearer x." + payload + ".signed"}}
}

// TestCalled: a pod is told of when the cloud has taken its token, once for each; a token that the cloud refuses, or
// that is of no pod, tells of nobody.
func TestCalled(t *testing.T) {
	const account = "system:serviceaccount:default:app"
	g, _ := newTestGate()
	var got []nodelocal.Pod
	g.Called = func(p nodelocal.Pod) { got = append(got, p) }
	for range 2 {
		g.learn(tokenOf(boundTo(account, "forged")), http.StatusUnauthorized)
		g.learn(tokenOf(boundTo(account, "one")), http.StatusOK)
		g.learn(tokenOf(boundTo(account, "two")), http.StatusForbidden)
		g.learn(tokenOf(boundTo(account, "")), http.StatusOK)
		g.learn(tokenOf(boundTo("ann", "three")), http.StatusOK)
		g.learn(tokenOf(http.Header{"Authorization": {"Bearer x"}}), http.StatusOK)
		g.learn(tokenOf(http.Header{}), http.StatusOK)
	}
	if want := []nodelocal.Pod{
		{Namespace: "default", Name: "one", UID: "uid-one"}, {Namespace: "default", Name: "two", UID: "uid-two"},
	}; !slices.Equal(got, want) {
		t.Errorf("told of %v, want %v", got, want)
	}
}
