package relayed

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/scope"
)

func TestRoute(t *testing.T) {
	relays := scope.NewSet()
	rt := Router(relays.All)
	for _, name := range append([]string{"endpoints.v1.", "endpointslices.v1.discovery.k8s.io"},
		"zones.v1.example.com=Zone!") {
		r, err := relay.ParseResource(name)
		check(t, err)
		held, err := relay.New(relay.Config{Resource: r})
		check(t, err)
		relays.Add(held)
	}
	const none = "<nil>"
	tests := []struct{ method, uri, want string }{
		{"GET", "/api/v1/endpoints", "list endpoints"},
		{"GET", "/api/v1/namespaces/a/endpoints", "list endpoints in a"},
		{"GET", "/api/v1/namespaces/a/endpoints/b", "get endpoints b in a"},
		{"GET", "/api/v1/endpoints?watch=1", "watch endpoints"},
		{
			"GET", "/api/v1/endpoints?watch=true&fieldSelector=metadata.name=x&labelSelector=a%3Db",
			"watch endpoints x (metadata.name=x) (a=b)",
		},
		{"GET", "/api/v1/endpoints?watch=yes", "watch endpoints"},
		{"GET", "/api/v1/endpoints?watch=", "watch endpoints"},
		{"GET", "/api/v1/endpoints?watch=False", "list endpoints"},
		{"GET", "/api/v1/endpoints?watch=0", "list endpoints"},
		{"GET", "/api/v1/endpoints?fieldSelector=metadata.name=..", "list endpoints (metadata.name=..)"},
		{"GET", "/api/v1/endpoints?fieldSelector=metadata.name!=x", "list endpoints (metadata.name!=x)"},
		{"GET", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b", "get endpointslices b in a"},
		{"GET", "/apis/example.com/v1/zones/b", "get zones b"},
		{"PUT", "/api/v1/namespaces/a/endpoints/b", "write endpoints b in a"},
		{"POST", "/api/v1/namespaces/a/endpoints", "write endpoints in a"},
		{"PATCH", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b", "write endpointslices b in a"},
		{"DELETE", "/api/v1/namespaces/a/endpoints/b", "write endpoints b in a"},

		{"HEAD", "/api/v1/endpoints", none},
		{"OPTIONS", "/api/v1/endpoints", none},
		{"GET", "/api/v1/endpoints/b", none},
		{"GET", "/api/v1/endpoints/", none},
		{"GET", "/api/v1/namespaces/a/endpoints/b/", none},
		{"GET", "/api/v1/namespaces/a/endpoints/b/status", none},
		{"GET", "/api/v1/watch/endpoints", none},
		{"GET", "/api/v1/namespaces//endpoints", none},
		{"GET", "/api/v1/namespaces/a%2Fb/endpoints", none},
		{"GET", "/api/v1/endpointsx", none},
		{"GET", "/api/v1", none},
		{"GET", "/api/v1/", none},
		{"GET", "/api/v1/pods", none},
		{"GET", "/api/v1/namespaces/endpoints", none},
		{"GET", "/api/v1/../v1/endpoints", none},
		{"GET", "//api/v1/endpoints", none},
		{"GET", "/apis//v1/endpoints", none},
		{"GET", "/apis/discovery.k8s.io/v1beta1/endpointslices", none},
		{"GET", "/apis/example.com/v1/namespaces/a/zones/b", none},
	}
	for _, test := range tests {
		got := none
		if tg := rt.Route(request.Parse(httptest.NewRequest(test.method, "https://hub"+test.uri, nil))); tg != nil {
			got = tg.Verb
			if tg.Writes() {
				got = "write"
			}
			got += " " + tg.Resource.Name
			if name := tg.Authorized(); name != "" {
				got += " " + name
			}
			if tg.Namespace != "" {
				got += " in " + tg.Namespace
			}
			for _, s := range []string{tg.FieldSelector, tg.LabelSelector} {
				if s != "" {
					got += fmt.Sprintf(" (%s)", s)
				}
			}
		}
		if got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.method, test.uri, got, test.want)
		}
	}
	upgrade := httptest.NewRequest(http.MethodGet, "https://hub/api/v1/endpoints?watch=1", nil)
	upgrade.Header.Set("Upgrade", "websocket")
	if rt.Route(request.Parse(upgrade)) != nil {
		t.Error("a watch over WebSocket does not go to the cloud")
	}
}
