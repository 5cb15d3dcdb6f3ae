package coordinator

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientrest "k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/relay"
)

const (
	watchGrace   = 500 * time.Millisecond  // for watches of Leases to end at a stop
	requestGrace = 1500 * time.Millisecond // for everything else
	// for which etcd's health is known: asking is a read by a majority, and anybody may ask.
	checkLasts = time.Second
)

// gates sets the features of the generic server, which are variables of the process.
var gates = sync.OnceValue(func() error {
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(features.DetectCacheInconsistency): false, // reads everything from etcd every few minutes
		string(features.APIServerIdentity):        false, // an identity among several servers of one cluster
	})
})

// api is what the generic server is put together of.
type api struct {
	types      *types
	serving    serving
	authorizer authorizer.Authorizer
	front      *relays // what it is to be behind
	leases     *leases
	catalog    *Catalog
	paths      map[string]http.Handler // what is served beside resources
	etcd       func() error            // why it does not serve; nil: it does
	waits      func(*relay.Relay) error
}

// server puts the generic server together. Its privileged loopback client does not exist: nothing here needs one.
func (a api) server() (*genericapiserver.GenericAPIServer, error) {
	cfg := genericapiserver.NewConfig(a.types.codecs)
	cfg.EffectiveVersion = newAPIVersion()
	cfg.ExternalAddress = a.serving.listener.Addr().String()
	cfg.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: a.serving.listener, Cert: a.serving.cert, ClientCA: a.serving.ca, MinTLSVersion: tls.VersionTLS13,
	}
	cfg.LoopbackClientConfig = &clientrest.Config{}
	cfg.Authentication.Authenticator = newAuthenticator(&a.serving)
	cfg.Authorization.Authorizer = a.authorizer
	cfg.MaxRequestBodyBytes, cfg.JSONPatchMaxCopyBytes = limit.MaxBody, limit.MaxBody
	cfg.EnableProfiling = false
	cfg.EnableMetrics = false // ours is served instead
	cfg.StorageObjectCountTracker = nil
	cfg.ShutdownWatchTerminationGracePeriod = watchGrace
	longRunning := filters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString())
	cfg.LongRunningFunc = func(req *http.Request, info *genericrequest.RequestInfo) bool {
		// Lists of relays too: they are streamed, and the relay itself closes those whose client takes nothing.
		return longRunning(req, info) || a.front.shared(info) || req.URL.Path == contract.LinePath
	}
	cfg.BuildHandlerChainFunc = func(h http.Handler, cfg *genericapiserver.Config) http.Handler {
		a.front.next, a.front.fail = h, fail(a.types)
		return genericapiserver.DefaultBuildHandlerChain(a.front, cfg)
	}
	a.addHealth(cfg)
	namer := openapi.NewDefinitionNamer(a.types.published)
	// Version 3 alone: kubectl reads it since 1.27, and version 2 beside it costs 0.5 MB of memory for ever.
	cfg.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(GetOpenAPIDefinitions, namer)
	cfg.OpenAPIV3Config.Info.Title = "weir-coordinator"

	s, err := cfg.Complete(nil).New("weir-coordinator", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("api server: %w", err)
	}
	s.ShutdownTimeout = requestGrace
	if err := a.install(s, cfg); err != nil {
		return nil, fmt.Errorf("api server: %w", err)
	}
	return s, nil
}

// install adds what is served.
func (a api) install(s *genericapiserver.GenericAPIServer, cfg *genericapiserver.Config) error {
	info := genericapiserver.NewDefaultAPIGroupInfo(coordinationv1.GroupName, a.types.scheme, a.types.parameters,
		a.types.codecs)
	info.VersionedResourcesStorageMap[coordinationv1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"leases": a.leases,
	}
	if err := s.InstallAPIGroup(&info); err != nil {
		return err
	}
	a.catalog.Open(s, cfg.DiscoveryAddresses)
	for path, h := range a.paths {
		s.Handler.NonGoRestfulMux.Handle(path, h)
	}
	return nil
}

// addHealth sets the checks: etcd for all, relays for /readyz only.
func (a api) addHealth(cfg *genericapiserver.Config) {
	etcd := healthz.NamedCheck("etcd", func(*http.Request) error { return a.etcd() })
	cfg.HealthzChecks = []healthz.HealthChecker{healthz.PingHealthz, etcd}
	cfg.LivezChecks = []healthz.HealthChecker{healthz.PingHealthz, etcd}
	cfg.ReadyzChecks = []healthz.HealthChecker{healthz.PingHealthz, etcd}
	first := a.front.all.All()
	for _, r := range first {
		cfg.AddReadyzChecks(
			healthz.NamedCheck("relay-"+r.Resource().String(), func(*http.Request) error { return a.waits(r) }))
	}
	cfg.AddReadyzChecks(healthz.NamedCheck("relays", func(*http.Request) error { // those that came since
		for _, r := range a.front.all.All() {
			if err := a.waits(r); err != nil && !slices.Contains(first, r) {
				return err
			}
		}
		return nil
	}))
}

// newAuthenticator knows callers by client certificate, and lets in others where it does not matter who they are. Whose
// certificate is revoked is nobody.
func newAuthenticator(s *serving) authenticator.Request {
	var public []apiserverv1.AnonymousAuthCondition
	for _, p := range authz.PublicPaths() {
		public = append(public, apiserverv1.AnonymousAuthCondition{Path: p})
	}
	known := authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
			return nil, false, nil
		}
		chain := req.TLS.PeerCertificates
		late, err := s.verify(chain)
		if err != nil {
			return nil, false, fmt.Errorf("the certificate of %q: %w", chain[0].Subject.CommonName, err)
		}
		who, ok, err := x509.CommonNameUserConversion.User(chain)
		if ok && late {
			who.User = authz.Reader(who.User)
		}
		return who, ok, err
	})
	return union.New(known, anonymous.NewAuthenticator(public))
}

// storage says how Leases are kept: as protobuf, under /registry, behind a watch cache.
func storage(t *types, etcd string) generic.RESTOptionsGetter {
	proto, _ := runtime.SerializerInfoForMediaType(t.codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	gv := coordinationv1.SchemeGroupVersion
	codec := t.codecs.CodecForVersions(proto.Serializer, t.codecs.UniversalDeserializer(), gv, schema.GroupVersion{
		Group: coordinationv1.GroupName, Version: runtime.APIVersionInternal,
	})
	config := storagebackend.NewDefaultConfig("/registry", codec)
	config.EncodeVersioner = gv
	config.Transport.ServerList = []string{etcd}
	resource := coordinationv1.Resource("leases")
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(resource),
		Decorator:               registry.StorageWithCacher(),
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          "/leases",
	}
}

// fail writes an error as an API server does.
func fail(t *types) func(w http.ResponseWriter, req *http.Request, err error) {
	return func(w http.ResponseWriter, req *http.Request, err error) {
		responsewriters.ErrorNegotiated(err, t.codecs, schema.GroupVersion{Version: "v1"}, w, req)
	}
}
