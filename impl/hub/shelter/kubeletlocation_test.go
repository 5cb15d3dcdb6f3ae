package shelter

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/request"
)

func parse(method, uri string, upgrade bool) *request.Request {
	req := httptest.NewRequest(method, uri, nil)
	if upgrade {
		req.Header.Set("Upgrade", "SPDY/3.1")
	}
	return request.Parse(req)
}

// TestIsMeant: requests for the kubelet are those, and no others.
func TestIsMeant(t *testing.T) {
	const web = "/api/v1/namespaces/default/pods/web"
	for _, x := range []struct {
		method, uri string
		want        bool
	}{
		{http.MethodGet, web + "/log?follow=1", true}, {http.MethodGet, web + "/exec", true},
		{http.MethodPost, web + "/exec", true}, {http.MethodPost, web + "/attach", true},
		{http.MethodPost, web + "/portforward", true},
		{http.MethodPost, web + "/log", false}, {http.MethodHead, web + "/log", false},
		{http.MethodPut, web + "/exec", false}, {http.MethodDelete, web + "/exec", false},
		{http.MethodGet, web, false}, {http.MethodGet, web + "/proxy", false},
		{http.MethodGet, web + "/status", false}, {http.MethodGet, web + "/log/", false},
		{http.MethodGet, web + "/log/../exec", false}, {http.MethodGet, web + "//log", false},
		{http.MethodGet, web + "/exec/more", false}, {http.MethodGet, "/api/v1/pods/web/log", false},
		{http.MethodGet, "/api/v1/namespaces/default/services/web/log", false},
		{http.MethodGet, "/apis/x.io/v1/namespaces/default/pods/web/log", false},
		{http.MethodGet, "/api/v2/namespaces/default/pods/web/log", false},
		{http.MethodGet, "/api/v1/watch/namespaces/default/pods/web/log", false}, {http.MethodGet, "/containerLogs", false},
	} {
		if got := isMeant(parse(x.method, x.uri, false)); got != x.want {
			t.Errorf("%s %s: %t", x.method, x.uri, got)
		}
	}
}

// TestLocate: the kubelet is asked what kube-apiserver would ask (LogLocation, streamLocation, PortForwardLocation).
func TestLocate(t *testing.T) {
	of := func(containers ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
		for _, c := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
		}
		return p
	}
	more := of("app")
	more.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	more.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"},
	}}
	for _, x := range []struct {
		pod     *corev1.Pod
		uri     string
		upgrade bool
		want    string // or why not
	}{
		{of("app"), "log", false, "/containerLogs/a/web/app"},
		{of("app"), "log?container=app&follow=false&previous=1&x=y", false, "/containerLogs/a/web/app?previous=true"},
		{of("app"), "log?sinceSeconds=1&sinceTime=2026-01-02T03%3A04%3A05Z&limitBytes=3&tailLines=4&stream=Stdout", false,
			"/containerLogs/a/web/app?limitBytes=3&sinceSeconds=1&sinceTime=2026-01-02T03%3A04%3A05Z&stream=Stdout&tailLines=4"},
		{of("app"), "log", true, "without the cloud, logs are read without an upgrade"},
		{of("app"), "exec?command=ls&command=-l+%2F%26&stdin=true&stdout=1&stderr=0&tty=true", true,
			"/exec/a/web/app?command=ls&command=-l+%2F%26&input=1&output=1&tty=1"},
		{of("app"), "exec?input=1&command=ls&stderr=true", true, "/exec/a/web/app?command=ls&error=1"},
		{of("app"), "exec?command=ls", false, "Upgrade request required"},
		{of("app"), "attach?command=ls&stdout=true", true, "/attach/a/web/app?output=1"},
		{of("app", "side"), "portforward", true, "/portForward/a/web"},
		{of("app"), "portforward?ports=80&ports=443", true, "/portForward/a/web?port=80%2C443"},
		{of("app", "side"), "log?container=side", false, "/containerLogs/a/web/side"},
		{of("app", "side"), "log", false, "a container name must be specified for pod web, choose one of: [app side]"},
		{of(), "log", false, "a container name must be specified for pod web"},
		{more, "log", false, "/containerLogs/a/web/app"},
		{more, "log?container=init", false, "/containerLogs/a/web/init"},
		{more, "exec?container=debug&stdout=1&command=ls", true, "/exec/a/web/debug?command=ls&output=1"},
		{more, "exec?container=../../far/app&command=ls", true, "container ../../far/app is not valid for pod web"},
	} {
		at, refusal := locate(x.pod, parse(http.MethodGet, "/api/v1/namespaces/a/pods/web/"+x.uri, x.upgrade))
		var got string
		if refusal != nil {
			got = refusal.ErrStatus.Message
			if refusal.ErrStatus.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", x.uri, refusal.ErrStatus.Code)
			}
		} else {
			got = at.String()
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", x.uri, got, x.want)
		}
	}
}

// TestQuestions: a way into a container needs create, whatever the method.
func TestQuestions(t *testing.T) {
	const web = "/api/v1/namespaces/default/pods/web/"
	for _, x := range []struct {
		method, of string
		want       []string
	}{
		{http.MethodGet, "log", []string{"get pods/log web in default"}},
		{http.MethodGet, "exec", []string{"get pods/exec web in default", "create pods/exec web in default"}},
		{http.MethodPost, "exec", []string{"create pods/exec web in default"}},
		{http.MethodGet, "portforward", []string{
			"get pods/portforward web in default", "create pods/portforward web in default",
		}},
	} {
		var got []string
		for _, q := range questions(parse(x.method, web+x.of, true)) {
			got = append(got, q.String())
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s %s: %q", x.method, x.of, got)
		}
	}
}

// TestPass: headers that choose the protocol pass, and none that shows a credential.
func TestPass(t *testing.T) {
	got := pass(http.Header{
		"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "Impersonate-User": {"x"}, "X-Remote-User": {"x"},
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Key": {"k"}, "Sec-Websocket-Version": {"13"},
		"User-Agent": {"kubectl"},
		"Sec-Websocket-Protocol": {
			"v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.YQ", " v4.channel.k8s.io ,v3.channel.k8s.io",
		},
	})
	want := map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Key": "k", "Sec-Websocket-Version": "13",
		"User-Agent": "kubectl", "Sec-Websocket-Protocol": "v5.channel.k8s.io, v4.channel.k8s.io, v3.channel.k8s.io",
	}
	for name, values := range got {
		if len(values) != 1 || values[0] != want[name] {
			t.Errorf("%s: %q", name, values)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d headers pass: %v", len(got), got)
	}
}
