package reverse

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	clientrest "k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
)

// TestGenericServer: both handlers work behind the filters of kube-apiserver's generic server, as in weir-gate. The
// path that authorization sees is set before them.
func TestGenericServer(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{
		Authorize: func(req *http.Request, _ Place) (string, error) { // the filters have done it
			u, _ := genericrequest.UserFrom(req.Context())
			return u.GetName(), nil
		},
	})
	types := runtime.NewScheme()
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	cfg := genericapiserver.NewConfig(serializer.NewCodecFactory(types))
	cfg.LoopbackClientConfig = &clientrest.Config{}
	cfg.Authentication.Authenticator = authenticator.RequestFunc(
		func(req *http.Request) (*authenticator.Response, bool, error) {
			name := req.TLS.PeerCertificates[0].Subject.CommonName
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
		})
	var asked atomic.Pointer[authorizer.AttributesRecord]
	cfg.Authorization.Authorizer = authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			asked.Store(&authorizer.AttributesRecord{Verb: a.GetVerb(), Path: a.GetPath(), User: a.GetUser()})
			if a.GetUser().GetName() == "mallory" {
				return authorizer.DecisionDeny, "", nil
			}
			return authorizer.DecisionAllow, "", nil
		})
	cfg.LongRunningFunc = func(req *http.Request, _ *genericrequest.RequestInfo) bool {
		return req.Method == http.MethodConnect || req.URL.Path == contract.ReversePath
	}
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.SkipOpenAPIInstallation, cfg.EnableDiscovery, cfg.ExternalAddress = true, false, "192.0.2.1:1"
	cfg.StorageObjectCountTracker = nil
	cfg.BuildHandlerChainFunc = func(_ http.Handler, cfg *genericapiserver.Config) http.Handler {
		chain := genericapiserver.DefaultBuildHandlerChain(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodConnect {
				b.front.ServeHTTP(w, req)
				return
			}
			b.ways.Admit(w, req, "harbour", "edge-1")
		}), cfg)
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodConnect {
				req.URL.Path = contract.ConnectPath
			}
			chain.ServeHTTP(w, req)
		})
	}
	generic, err := cfg.Complete(nil).New("weir-gate", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	defer generic.Destroy()
	outer := generic.Handler
	server := httptest.NewUnstartedServer(outer)
	server.TLS = b.server.TLS.Clone()
	server.TLS.NextProtos = nil
	server.StartTLS()
	b.server.Close()
	b.server = server
	b.lead("edge-1", nil)
	if a := asked.Load(); a.Verb != "post" || a.Path != contract.ReversePath {
		t.Errorf("asked for %+v", a)
	}
	b.listen(kubelet, func(c *net.TCPConn) { echo(c) })
	c, err := b.egress("kube-apiserver")(t.Context(), "tcp", kubelet)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("hello"))
	says(t, c, "hello")
	if a := asked.Load(); a.Verb != "connect" || a.Path != contract.ConnectPath || a.User.GetName() != "kube-apiserver" {
		t.Errorf("asked for %+v", a)
	}
	if _, err := b.egress("mallory")(t.Context(), "tcp", kubelet); err == nil {
		t.Error("connected")
	}
}
