package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/certificates"
	"github.com/weir-edge/weir/impl/manager/gates"
	"github.com/weir-edge/weir/impl/manager/jobs"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/pools"
	"github.com/weir-edge/weir/impl/manager/renewals"
	"github.com/weir-edge/weir/impl/manager/verdict"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

const (
	stopPatience = 5 * time.Second
	noAddress    = "0" // of metrics: they are not served
)

// Manager is the process.
type Manager struct {
	set      *settings
	ctrl     ctrl.Manager
	board    *board
	metrics  *metrics
	policies *policies
	watched  *manifests.Watched
	gate     *manifests.Gate // opens when something comes that is watched by its name
	lock     *lock           // nil: there is one replica
	ear      *ear
	said     *said
	weirGate *gates.Gate
}

// New checks the config and puts the manager together. It takes the ports of metrics and health; Run gives them back.
func New(c Config) (*Manager, error) {
	set, err := c.check()
	if err != nil {
		return nil, err
	}
	if err := set.connect(); err != nil {
		return nil, err
	}
	m := &Manager{
		set: set, board: newBoard(set.Clock, set.verdict), gate: manifests.NewGate(set.Clock, set.Logger),
	}
	if m.weirGate, err = gates.New(set.gate); err != nil {
		return nil, err
	}
	m.metrics = newMetrics(m.board)
	m.board.tell(func(_ time.Time, v *verdict.Machine) { v.SetPolicies(set.usual, nil) })
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	options := m.options(scheme)
	if set.LeaderElect {
		if m.lock, err = newLock(m); err != nil {
			return nil, err
		}
		options.LeaderElectionResourceLockInterface = m.lock
	}
	if m.ctrl, err = ctrl.New(set.rest, options); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", set.rest.Host, err)
	}
	m.ear = &ear{cache: m.ctrl.GetCache(), board: m.board, metrics: m.metrics}
	m.said = &said{
		cache: m.ctrl.GetCache(), reader: m.ctrl.GetAPIReader(), gate: m.gate, board: m.board, hubs: m.metrics.hubs,
		usual: set.usual, log: set.Logger,
	}
	return m, m.add(scheme)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme,
		admissionv1.AddToScheme,
		discoveryv1.AddToScheme, batchv1.AddToScheme, nodepool.AddToScheme, poolv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("scheme: %w", err)
		}
	}
	return scheme, nil
}

// options say what is watched, and how little of it is held.
func (m *Manager) options(scheme *runtime.Scheme) ctrl.Options {
	s := m.set
	own := labels.SelectorFromSet(labels.Set{contract.ManagedLabel: contract.ManagedBy})
	leases := map[string]cache.Config{contract.NodeLeaseNamespace: {}}
	grace := stopPatience
	what := map[client.Object]cache.ByObject{
		&corev1.Node{}:          {Transform: trimNode},
		&coordinationv1.Lease{}: {Namespaces: leases, Transform: trimLease},
		&rbacv1.Role{}:          {Namespaces: leases, Label: own, Transform: cache.TransformStripManagedFields()},
		&rbacv1.RoleBinding{}:   {Namespaces: leases, Label: own, Transform: cache.TransformStripManagedFields()},
		&batchv1.Job{}: {
			Namespaces: map[string]cache.Config{contract.ManagerNamespace: {}},
			Label:      jobsOf(contract.InstallerName, contract.PreloadName), Transform: cache.TransformStripManagedFields(),
		},
	}
	maps.Copy(what, pools.Watched())
	if s.certifies() {
		what[&rbacv1.ClusterRoleBinding{}] = cache.ByObject{Transform: trimBinding}
		what[&certificatesv1.CertificateSigningRequest{}] = cache.ByObject{Transform: certificates.Trim}
	}
	return ctrl.Options{
		Scheme: scheme,
		Logger: logr.FromSlogHandler(cli.Quieter(s.Logger.Handler())),
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true, // a forgotten informer would be one of everything
			NewInformer:                 informer(s.Clock),
			ByObject:                    what,
		},
		LeaderElection:                s.LeaderElect,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &s.LeaderElectLeaseDuration,
		RenewDeadline:                 &s.LeaderElectRenewDeadline,
		RetryPeriod:                   &s.LeaderElectRetryPeriod,
		Metrics:                       metricsserver.Options{BindAddress: s.MetricsBindAddress},
		HealthProbeBindAddress:        s.HealthProbeBindAddress,
		GracefulShutdownTimeout:       &grace,
	}
}

// jobsOf selects Jobs by their names.
func jobsOf(names ...string) labels.Selector {
	r, err := labels.NewRequirement(contract.NameLabel, selection.In, names)
	utilruntime.Must(err) // names are constants
	return labels.NewSelector().Add(*r)
}

// add puts in what runs.
func (m *Manager) add(scheme *runtime.Scheme) error {
	s := m.set
	c := m.ctrl.GetClient()
	if err := m.watchNamed(); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	m.policies = &policies{
		reader: m.watched, changed: make(chan struct{}, 1), scheme: scheme, clock: s.Clock, metrics: m.metrics, log: s.Logger,
	}
	if err := m.watched.FollowAll(func() {
		m.policies.wake()
		m.gate.Wake()
	}); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	release := &releaser{
		client: c, reader: m.ctrl.GetAPIReader(), clock: s.Clock, board: m.board, settle: s.NodeMonitorGracePeriod / 10,
		metrics: m.metrics, log: s.Logger, owed: map[string]*debt{},
	}
	release.group.SetLimit(releaseWorkers)
	for _, r := range []ctrl.Runnable{
		m.watched, m.board, m.policies, m.said,
		&keeper{
			client: c, reader: m.ctrl.GetAPIReader(), watched: m.watched, clock: s.Clock, board: m.board,
			heardAll: func() bool { return m.ear.heardAll() && m.said.known() }, release: release,
			metrics: m.metrics, log: s.Logger,
		},
	} {
		if err := m.ctrl.Add(r); err != nil {
			return fmt.Errorf("manager: %w", err)
		}
	}
	show := &cutOff{
		client: c, clock: s.Clock, board: m.board, events: m.ctrl.GetEventRecorder("weir-manager"), metrics: m.metrics,
	}
	if err := show.add(m.ctrl); err != nil {
		return err
	}
	if err := (&forwarders{client: c}).add(m.ctrl); err != nil {
		return err
	}
	certifies := &certifier{ctrl: m.ctrl, set: m.set, metrics: m.metrics, gate: m.gate}
	if err := certifies.add(); err != nil {
		return err
	}
	keeps := pools.Config{
		WeirGate: m.weirGate.Now, FollowGate: m.weirGate.Follow, Gate: m.gate, Clock: s.Clock, Seen: m.board.seen,
		Told: m.metrics.hubs.Of, Follow: m.follow, Images: m.watched, Metrics: m.metrics.leaderHubs, Log: s.Logger,
	}
	if s.Certificates == signCertificates {
		keeps.Authority, keeps.Keys = certifies.authority, func(changed func(pool string)) source.Source {
			return certifies.written(changed, contract.AuthorityPrefix, contract.ReturnedPrefix)
		}
	}
	if err := pools.Add(m.ctrl, keeps); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	if err := jobs.Add(m.ctrl, jobs.Config{
		Gate: m.gate, Clock: s.Clock, Images: m.watched, Metrics: m.metrics.installs, Log: s.Logger,
	}); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	if err := jobs.AddPreloads(m.ctrl, jobs.PreloadsConfig{Gate: m.gate, Clock: s.Clock, Log: s.Logger}); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	heard := renewals.Config{
		REST: s.rest, Informer: informer(s.Clock), Members: func() source.Source {
			return source.Kind(m.ctrl.GetCache(), &corev1.Node{}, membership())
		},
		Gate: m.gate, Clock: s.Clock, Metrics: m.metrics.renewals, Log: s.Logger,
	}
	if s.certifies() {
		heard.Documents, heard.Keys = certifies.documents, func(changed func(pool string)) source.Source {
			return certifies.written(changed, contract.AuthorityPrefix)
		}
	}
	if err := renewals.Add(m.ctrl, heard); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	if err := m.ctrl.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return m.ctrl.AddReadyzCheck("policies", m.policies.check)
}

// watchNamed watches single objects that weir-manager has to know: the policies with their ConfigMaps, its Lease, and
// what comes with kinds and grants that it waits for.
func (m *Manager) watchNamed() error {
	c, err := client.NewWithWatch(m.set.rest, client.Options{
		HTTPClient: m.ctrl.GetHTTPClient(), Scheme: m.ctrl.GetScheme(), Mapper: m.ctrl.GetRESTMapper(),
	})
	if err != nil {
		return err
	}
	all, err := manifests.Wanted(m.ctrl.GetScheme())
	if err != nil {
		return err
	}
	all = append(all, manifests.Awaited()...)
	if m.watched, err = manifests.NewWatched(c, informer(m.set.Clock), all...); err != nil || m.lock == nil {
		return err
	}
	lease, err := manifests.NewWatched(c, informer(m.set.Clock), electionLease())
	if err != nil {
		return err
	}
	return errors.Join(lease.Follow(electionLease(), m.lock.hear), m.ctrl.Add(lease))
}

// follow calls changed for each pool of which something else is known than before, until the context ends.
func (m *Manager) follow(ctx context.Context, changed func(pool string)) {
	var both sync.WaitGroup
	both.Go(func() { m.board.follow(ctx, changed) })
	both.Go(func() { m.metrics.hubs.Follow(ctx, changed) })
	both.Wait()
}

// Run runs until the context ends or the leadership is lost, which is an error: the process has to end then.
func (m *Manager) Run(ctx context.Context) error {
	if m.set.MetricsBindAddress != noAddress { // the library has one registry for the process
		if err := ctrlmetrics.Registry.Register(m.metrics); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		defer ctrlmetrics.Registry.Unregister(m.metrics)
	}
	if err := m.ear.listen(ctx); err != nil {
		return err
	}
	// A manager that is told to stop gives its Lease back, and controller-runtime may call that a loss.
	if err := m.ctrl.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("manager: %w", err)
	}
	m.set.Logger.Info("stopped")
	return nil
}
