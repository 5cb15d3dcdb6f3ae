package attack

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// What stands on every stage.
const (
	// canary is the content of a Secret: it is searched for where it must not be.
	canary = "canary-of-a-secret-4c1f0e"
	// auditPolicy makes kube-apiserver note who called.
	auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, " +
		"verbs: [get]}, {level: None}]\n"
)

//go:embed stage.yaml
var stageObjects string

// place is a pool in which attacks are played.
type place struct {
	name         string
	mode         runtime.Mode
	nodes        int
	hubs         []int // that run from the beginning, 1 is the first
	coordinators int   // that run from the beginning
	replicas     int   // that there are; 0 is 1
	manager      bool  // weir-manager runs
	enrols       bool  // and hubs ask it for their certificates
	flags        parts.Flags
	// coordinatorFlags are those of the coordinators, beside what the testbed gives them.
	coordinatorFlags parts.Flags
	asksCoordinator  bool // the first hubs ask for the certificates of the coordinators beside them, too
	gate             bool // weir-gate runs, and the pool is told of it
	falseGate        bool // the attacker has the key of its certificate
}

// swift are flags with which a hub sees within seconds that the cloud is away.
func swift() parts.Flags {
	return parts.Flags{
		"heartbeat-interval": "1s", "heartbeat-timeout": "1s", "heartbeat-failed-retry": 3, "heartbeat-healthy-threshold": 1,
		"proxy-port": 10261,
	}
}

// own is a place of one hub for one attack, which breaks it.
func own(number string) *place {
	return &place{name: "lone-" + number, mode: runtime.HubOnly, nodes: 1, hubs: []int{1}, flags: swift()}
}

// topology has a pool for each place that the attacks need.
func topology(attacks []Attack) (runtime.Topology, []*place) {
	var places []*place
	for _, a := range attacks {
		if !slices.ContainsFunc(places, func(p *place) bool { return p.name == a.place.name }) {
			places = append(places, a.place)
		}
	}
	t := runtime.Topology{
		Manager: true, Pools: []runtime.Pool{{Name: foreign, Nodes: 1, Mode: runtime.Weir, Gateless: true}},
	}
	if slices.ContainsFunc(places, func(p *place) bool { return p.gate || p.falseGate }) {
		t.Gate, t.GateFlags = true, gateFlags()
	}
	for _, p := range places {
		t.Pools = append(
			t.Pools,
			runtime.Pool{
				Name: p.name, Nodes: p.nodes, Mode: p.mode, Unread: true, Coordinators: p.replicas, Enrols: p.enrols,
				HubFlags: p.flags, EnrolsCoordinator: p.asksCoordinator, CoordinatorFlags: p.coordinatorFlags,
				Gateless: !p.gate,
			},
		)
	}
	return t, places
}

// foreign is a pool of which nothing runs: its certificates are those of attackers.
const foreign = "quay"

// stage is a cloud with what attackers want, and those who want it.
type stage struct {
	site  runtime.Site
	vault runtime.Vault
	admin kubernetes.Interface
	audit *audit

	starting sync.Mutex
	started  map[runtime.PartID]bool // for all places
}

// start starts weir-manager or weir-gate, if no place did yet, and waits until it is healthy.
func (s *stage) start(ctx context.Context, id runtime.PartID) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.started[id] {
		return nil
	}
	s.started[id] = true
	return runtime.Start(ctx, s.site, id)
}

func newStage(ctx context.Context, site runtime.Site) (*stage, error) {
	vault, ok := site.(runtime.Vault)
	if !ok {
		return nil, errors.New("the runtime gives away none of its keys, so nobody can be attacked in it")
	}
	config := site.Admin()
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := &stage{site: site, vault: vault, admin: admin, started: map[runtime.PartID]bool{}}
	if err := vault.Cloud().Apply(ctx, []byte(strings.ReplaceAll(stageObjects, "CANARY", canary))); err != nil {
		return nil, err
	}
	return s, nil
}

// token asks the cloud for a token of a service account, "namespace/name", perhaps bound to a pod, perhaps for another
// audience.
func (s *stage) token(ctx context.Context, account string, pod *corev1.Pod, audiences ...string) (string, error) {
	seconds := int64(3600)
	r := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, Audiences: audiences},
	}
	if pod != nil {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
		}
	}
	namespace, name, _ := strings.Cut(account, "/")
	answer, err := s.admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, r, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of %s: %w", account, err)
	}
	return answer.Status.Token, nil
}

// account makes a service account in namespace a, so that nobody shares what a hub knows of it, and returns a token of
// it.
func (s *stage) account(ctx context.Context, name string) (token string, err error) {
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := s.admin.CoreV1().ServiceAccounts("a").Create(ctx, object, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(
			err,
		) {
		return "", err
	}
	return s.token(ctx, "a/"+name, nil)
}

// pod makes a pod of the account reader on a node.
func (s *stage) pod(ctx context.Context, name, on string) (*corev1.Pod, error) {
	seconds := int64(3607)
	return s.admin.CoreV1().Pods("a").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: on, ServiceAccountName: "reader", AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}},
			// Without it, the kubelet may ask for no token of the account.
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{
					{
						ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
							Path: "token", ExpirationSeconds: &seconds,
						},
					},
				},
			}}}},
		},
	}, metav1.CreateOptions{})
}
