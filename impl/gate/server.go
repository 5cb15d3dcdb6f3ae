package gate

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
)

const (
	allowed      = 5 * time.Minute  // how long an allowed review counts
	denied       = 30 * time.Second // and one that is not
	watchGrace   = 500 * time.Millisecond
	requestGrace = 1500 * time.Millisecond
	reviewWithin = 10 * time.Second // kube-apiserver has to answer
)

// gates sets the features of the generic server, which are variables of the process.
var gates = sync.OnceValue(func() error {
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.APIServerIdentity): false})
})

// api is what the generic server is put together of.
type api struct {
	set      *settings
	listener net.Listener
	front    *front // what it is to be behind
	wayIn    *wayIn // nil: there is none
	relays   func() []*relay.Relay
	metrics  http.Handler
}

// server puts the generic server together. Who calls, and what he may, kube-apiserver tells.
func (a api) server() (*genericapiserver.GenericAPIServer, error) {
	if err := gates(); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	cert, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", a.set.TLSCertFile,
		a.set.TLSPrivateKeyFile)
	if err != nil {
		return nil, cli.Usage("--tls-cert-file, --tls-private-key-file", a.set.TLSCertFile, err.Error())
	}
	types := runtime.NewScheme()
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	cfg := genericapiserver.NewConfig(serializer.NewCodecFactory(types))
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.ExternalAddress = a.listener.Addr().String()
	cfg.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: a.listener, Cert: cert, MinTLSVersion: tls.VersionTLS13,
	}
	cfg.LoopbackClientConfig = &clientrest.Config{}
	cfg.SkipOpenAPIInstallation = true
	cfg.EnableProfiling, cfg.EnableMetrics, cfg.EnableIndex, cfg.EnableDiscovery = false, false, false, false
	cfg.StorageObjectCountTracker = nil
	cfg.ShutdownWatchTerminationGracePeriod = watchGrace
	if err := a.authenticate(cfg); err != nil {
		return nil, fmt.Errorf("ask kube-apiserver who calls: %w", err)
	}
	authz := options.NewDelegatingAuthorizationOptions().WithAlwaysAllowPaths(healthPaths...)
	authz.RemoteKubeConfigFile, authz.AllowCacheTTL, authz.DenyCacheTTL = a.set.Kubeconfig, allowed, denied
	if err := authz.ApplyTo(&cfg.Authorization); err != nil {
		return nil, fmt.Errorf("ask kube-apiserver who may read: %w", err)
	}
	if a.set.Pods {
		if err := a.servePods(cfg); err != nil {
			return nil, err
		}
	}
	cfg.LongRunningFunc = a.front.long
	cfg.BuildHandlerChainFunc = func(h http.Handler, cfg *genericapiserver.Config) http.Handler {
		a.front.next = h
		filters := func(next http.Handler) http.Handler { return genericapiserver.DefaultBuildHandlerChain(next, cfg) }
		if a.wayIn != nil {
			return knowing(cfg.SecureServing.ClientCA, a.wayIn.Around(a.front, cfg.Authorization.Authorizer, filters))
		}
		return knowing(cfg.SecureServing.ClientCA, filters(a.front))
	}
	cfg.AddReadyzChecks(healthz.NamedCheck("client-ca", func(*http.Request) error {
		return unknown(cfg.SecureServing.ClientCA)
	}), healthz.NamedCheck("relays", func(*http.Request) error {
		for _, r := range a.relays() {
			if err := a.front.behind(r); err != nil && !r.Status().Joins {
				return err
			}
		}
		return nil
	}))
	s, err := cfg.Complete(nil).New("weir-gate", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("api server: %w", err)
	}
	s.ShutdownTimeout = requestGrace
	s.Handler.NonGoRestfulMux.Handle("/metrics", a.metrics)
	return s, nil
}

// servePods has the front serve logs and commands of pods.
func (a api) servePods(cfg *genericapiserver.Config) error {
	client, err := kubernetes.NewForConfig(a.set.rest)
	if err != nil {
		return err
	}
	a.front.pods, err = NewPods(PodsConfig{
		Authorizer: cfg.Authorization.Authorizer, Cluster: client.CoreV1(),
		Dial: func(ctx context.Context, node *corev1.Node, address string) (net.Conn, error) {
			pool := node.Labels[contract.NodePoolLabel]
			if pool == "" {
				return nil, ErrNoPool
			}
			return a.wayIn.Dial(ctx, pool, node.Name, address)
		},
		CertFile: a.set.KubeletClientCertificate, KeyFile: a.set.KubeletClientKey,
		CAFile: a.set.KubeletCertificateAuthority, Logger: a.set.Logger,
	})
	if err != nil {
		return cli.Usage("--kubelet-client-certificate, --kubelet-client-key, --kubelet-certificate-authority",
			a.set.KubeletClientCertificate, err.Error())
	}
	return nil
}

// authenticate knows callers by the client certificates that kube-apiserver takes, and by tokens, which it reviews. No
// header names a caller: this is no aggregated API.
func (a api) authenticate(cfg *genericapiserver.Config) error {
	client, err := kubernetes.NewForConfig(a.set.rest)
	if err != nil {
		return err
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", metav1.NamespaceSystem,
		"extension-apiserver-authentication", "client-ca-file", client)
	if err != nil {
		return err
	}
	cfg.SecureServing.ClientCA = ca
	cfg.Authentication.Authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:               &apiserverv1.AnonymousAuthConfig{Enabled: true}, // of health; nobody reads without a name
		TokenAccessReviewClient: client.AuthenticationV1(), TokenAccessReviewTimeout: reviewWithin,
		WebhookRetryBackoff: options.DefaultAuthWebhookRetryBackoff(), CacheTTL: denied,
		ClientCertificateCAContentProvider: ca,
	}.New()
	return err
}
