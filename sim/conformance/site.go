package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/impl/manager/revocation"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// Way is how the specs reach the API.
type Way string

// The ways.
const (
	Straight Way = "straight"
	Leader   Way = "leader"
	Follower Way = "follower"
)

// Ways are all of them.
var Ways = []Way{Straight, Leader, Follower}

const (
	pool     = "edge"
	account  = "conformance" // the service account of the specs
	patience = 3 * time.Minute
	tokenEnd = 12 * time.Hour
	leads    = "Leader" // role of a hub
)

// scope is what the pool's relays hold: the default of the commands, ConfigMaps, and the custom resource of the spec
// that watches one.
var scope = []string{
	"+endpoints.v1.", "+endpointslices.v1.discovery.k8s.io", "+configmaps.v1.",
	"+noxus.v1beta1.mygroup.example.com=WishIHadChosenNoxu!",
}

// place is a site with a pool of two hubs, and a kubeconfig for each way.
type place struct {
	site    runtime.Site
	kubectl string
	configs map[Way]string
	nodes   map[Way]string
	release func() // ends what keeps controllers running
}

// unlimited lifts the hub's limit of requests for each caller: all specs call with one credential, and three processes
// of them at once. Some of them count an answer 429 as a failure, where client-go waits and asks again.
var unlimited = parts.Flags{"caller-rate": 100_000}

// newPlace brings up a site whose link has a delay.
func newPlace(ctx context.Context, o Options, dir string, rtt time.Duration) (p *place, err error) {
	site, err := (&runtime.Local{LogDir: filepath.Join(dir, "parts")}).Up(ctx, runtime.Topology{
		Tools: []string{cloud.Kubectl}, Controllers: true,
		Pools: []runtime.Pool{
			{
				Name: pool, Nodes: 2, Mode: runtime.Weir, Uplink: runtime.Link{RTT: rtt}, PoolScopeResources: scope,
				HubFlags: unlimited,
			},
		},
	}, o.Progress)
	if err != nil {
		return nil, err
	}
	p = &place{site: site, configs: map[Way]string{}, nodes: map[Way]string{}, release: func() {}}
	defer func() {
		if err != nil {
			p.release()
			err = errors.Join(err, site.Down(context.WithoutCancel(ctx)))
		}
	}()
	if p.kubectl, err = site.Tool(cloud.Kubectl); err != nil {
		return nil, err
	}
	admin, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		return nil, err
	}
	token, err := grant(ctx, admin)
	if err != nil {
		return nil, fmt.Errorf("prepare the cloud for the specs: %w", err)
	}
	others := site.Parts()[1:] // all but the apiserver, which runs
	if err := runtime.Start(ctx, site, others...); err != nil {
		return nil, err
	}
	if err := p.keepControllers(ctx, o.Progress); err != nil {
		return nil, err
	}
	if err := p.findHubs(ctx); err != nil {
		return nil, err
	}
	return p, p.write(dir, token)
}

// grant lets the specs do everything, and hubs read what is in the pool's scope.
func grant(ctx context.Context, admin kubernetes.Interface) (token string, err error) {
	meta := metav1.ObjectMeta{Name: account}
	hubs := rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "mygroup.example.com"}, Resources: []string{"configmaps", "noxus"},
		Verbs: []string{"get", "list", "watch"},
	}}}
	if _, err := admin.RbacV1().ClusterRoles().Create(ctx, &hubs, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	who := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: account}
	for _, b := range []rbacv1.ClusterRoleBinding{
		{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: account},
			Subjects: revocation.Binding(revocation.HubRole, pool, runtime.Pool{Name: pool, Nodes: 2}.NodeNames()).Subjects,
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: account + "-admin"},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: []rbacv1.Subject{who},
		},
	} {
		if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &b, metav1.CreateOptions{}); err != nil {
			return "", err
		}
	}
	accounts := admin.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	seconds := int64(tokenEnd / time.Second)
	t, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return t.Status.Token, nil
}

// keepControllers starts controllers again that end: they do when a busy machine lets them lose their lease, and the
// specs would wait for their work in vain.
func (p *place) keepControllers(ctx context.Context, say func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	var keepers sync.WaitGroup
	p.release = func() { cancel(); keepers.Wait() }
	for _, id := range []runtime.PartID{runtime.ControllerManager, runtime.Scheduler} {
		part, err := p.site.Part(id)
		if err != nil {
			return err
		}
		keepers.Go(func() { keep(ctx, part, say) })
	}
	return nil
}

// startable is what keep needs of a part.
type startable interface {
	Name() string
	Start(ctx context.Context) error
	Done() <-chan struct{}
}

// keep starts a part again whenever it has ended, until ctx ends.
func keep(ctx context.Context, part startable, say func(string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-part.Done():
		}
		if ctx.Err() != nil {
			return
		}
		say(part.Name() + " has ended, and is started again")
		if err := part.Start(ctx); err != nil {
			say(fmt.Sprintf("start %s: %v", part.Name(), err)) // the apiserver may be slow: once more
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

// hubStatus is what a hub says of itself.
type hubStatus struct {
	Role      string `json:"role"`
	Resources []struct {
		Resource string `json:"resource"`
		Source   string `json:"source"`
	} `json:"resources"`
}

// fedBy tells where ConfigMaps come from: the custom resource is not there yet, and is asked for at the cloud by all.
func (s *hubStatus) fedBy(source string) bool {
	for _, r := range s.Resources {
		if r.Resource == "configmaps.v1." {
			return r.Source == source
		}
	}
	return false
}

// findHubs waits until one hub leads and the other is fed by the coordinator.
func (p *place) findHubs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, id := range p.site.Parts() {
			if id.Kind() != "hub" {
				continue
			}
			var s hubStatus
			part, err := p.site.Part(id)
			if err != nil {
				return err
			}
			if part.Status(ctx, &s) != nil {
				continue
			}
			switch {
			case s.Role == leads && s.fedBy("cloud"):
				p.nodes[Leader] = id.Of()
			case s.Role != leads && s.fedBy("coordinator"):
				p.nodes[Follower] = id.Of()
			}
		}
		if leader, follower := p.nodes[Leader], p.nodes[Follower]; leader != "" && follower != "" && leader != follower {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for a hub that leads and one that follows, have %v: %w", p.nodes, ctx.Err())
		}
	}
}

// write writes a kubeconfig for each way, all with the same credential.
func (p *place) write(dir, token string) error {
	for _, w := range Ways {
		config := &rest.Config{}
		if w == Straight {
			config = rest.AnonymousClientConfig(p.site.Admin())
		} else {
			e, err := p.site.Endpoint(p.nodes[w], account)
			if err != nil {
				return err
			}
			config.Host, config.TLSClientConfig = e.URL, e.Trust()
		}
		c := clientcmdapi.NewConfig()
		c.Clusters[account] = &clientcmdapi.Cluster{
			Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
		}
		c.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token}
		c.Contexts[account] = &clientcmdapi.Context{Cluster: account, AuthInfo: account}
		c.CurrentContext = account
		p.configs[w] = filepath.Join(dir, "kubeconfig-"+string(w))
		if err := clientcmd.WriteToFile(*c, p.configs[w]); err != nil {
			return fmt.Errorf("write the kubeconfig: %w", err)
		}
	}
	return nil
}

// relayed is how many requests the hub of a way has answered by relays, and how many by the cloud.
func (p *place) relayed(ctx context.Context, w Way) (relay, cloud float64) {
	part, err := p.site.Part(runtime.HubOf(p.nodes[w]))
	if err != nil {
		return 0, 0
	}
	m, err := part.Metrics(ctx)
	if err != nil {
		return 0, 0
	}
	return m.Sum("weir_hub_requests_total", `route="relay"`), m.Sum("weir_hub_requests_total", `route="cloud"`)
}

// remove ends the site and takes the credentials away.
func (p *place) remove(ctx context.Context) error {
	p.release()
	err := p.site.Down(context.WithoutCancel(ctx))
	for _, f := range p.configs {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}
