package liar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	// Forged is the name of the slice.
	Forged          = "forged-by-the-liar"
	forgedNamespace = "default"
	forgedAddress   = "6.6.6.6"

	renews  = time.Second
	lasts   = 15 // seconds that the Leases are held for
	forges  = 20 // tries to be the first with a version
	syncing = time.Minute
)

// Config says whose key the liar has.
type Config struct {
	Pool, Node  string
	Authority   *testca.Authority // of the pool: it signed the node's key
	Coordinator string            // host:port
	Cloud       *rest.Config
	Resources   []string // that the pool relays
}

// Liar leads a pool.
type Liar struct {
	cfg    Config
	cloud  kubernetes.Interface
	leases kubernetes.Interface // of the coordinator
	relays []*relay.Relay
	slices *relay.Relay
	server *httptest.Server

	stop func()
	wait sync.WaitGroup
}

// Lead takes the election for its node, which has to lead, and goes on trying until Stop.
func Lead(ctx context.Context, c Config) (*Liar, error) {
	l := &Liar{cfg: c}
	ctx, l.stop = context.WithCancel(ctx)
	err := l.open(ctx)
	if err == nil {
		err = l.take(ctx)
	}
	if err != nil {
		l.Stop()
		return nil, fmt.Errorf("liar: %w", err)
	}
	l.wait.Go(func() { l.reign(ctx) })
	return l, nil
}

// Stop ends it. The Lease is left as it is.
func (l *Liar) Stop() {
	l.stop()
	if l.server != nil {
		l.server.CloseClientConnections()
		l.server.Close()
	}
	l.wait.Wait()
}

// open reads the cloud and shows it.
func (l *Liar) open(ctx context.Context) error {
	pair, err := l.cfg.Authority.Issue(testca.Request{
		CommonName:    contract.NodeUserPrefix + l.cfg.Node,
		Organizations: []string{contract.PoolGroupPrefix + l.cfg.Pool, contract.HubGroup}, Client: true,
	})
	if err != nil {
		return err
	}
	cert, err := pair.TLS()
	if err != nil {
		return err
	}
	if l.cloud, err = kubernetes.NewForConfig(l.cfg.Cloud); err != nil {
		return err
	}
	pool := &rest.Config{Host: "https://" + l.cfg.Coordinator, QPS: -1, WarningHandler: rest.NoWarnings{}}
	pool.CAData, pool.CertData, pool.KeyData = l.cfg.Authority.CertPEM(), pair.CertPEM, pair.KeyPEM
	if l.leases, err = kubernetes.NewForConfig(pool); err != nil {
		return err
	}
	if err := l.feed(ctx); err != nil {
		return err
	}
	l.server = httptest.NewUnstartedServer(hop.NewServer(l.cfg.Node, scope.NewSet(l.relays...).All, clock.RealClock{}))
	l.server.EnableHTTP2, l.server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	l.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13,
	}
	l.server.StartTLS()
	return nil
}

// feed keeps relays as the cloud is, until ctx ends.
func (l *Liar) feed(ctx context.Context) error {
	transport, err := rest.TransportFor(l.cfg.Cloud)
	if err != nil {
		return err
	}
	at, err := url.Parse(l.cfg.Cloud.Host)
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	for _, name := range l.cfg.Resources {
		res, err := relay.ParseResource(name)
		if err != nil {
			return err
		}
		r, err := relay.New(relay.Config{Resource: res, Logger: quiet})
		if err != nil {
			return err
		}
		f, err := source.NewFeeder(source.Config{Relay: r, Logger: quiet})
		if err != nil {
			return err
		}
		// not Consistent: nobody checks what it holds.
		f.Use(&hop.Upstream{Name: "cloud", URL: at, Client: &http.Client{Transport: transport}})
		l.wait.Go(func() { _ = r.Run(ctx) })
		l.wait.Go(func() { _ = f.Run(ctx) })
		if l.relays = append(l.relays, r); res.Resource == contract.EndpointSlices {
			l.slices = r
		}
	}
	if l.slices == nil {
		return errors.New("the pool does not relay " + contract.EndpointSlices)
	}
	waiting, cancel := context.WithTimeout(ctx, syncing)
	defer cancel()
	for _, r := range l.relays {
		if err := r.WaitUntil(waiting, func() bool { return r.Status().Synced }); err != nil {
			return fmt.Errorf("read the cloud: %w", err)
		}
	}
	return nil
}

// Forge adds the slice, and returns when. The version is that of an object of another resource, so that the cloud gives
// it to no slice.
func (l *Liar) Forge(ctx context.Context) (time.Time, error) {
	maps := l.cloud.CoreV1().ConfigMaps(forgedNamespace)
	for range forges {
		m, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "version-"}},
			metav1.CreateOptions{})
		if err != nil {
			return time.Time{}, fmt.Errorf("forge: %w", err)
		}
		version, err := wire.ParseVersion(m.ResourceVersion)
		if err != nil {
			return time.Time{}, fmt.Errorf("forge: %w", err)
		}
		ev, err := l.forged(version)
		if err == nil {
			err = l.slices.Apply(ev)
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("forge: %w", err)
		}
		for o := range l.slices.Objects() {
			if o.Name == Forged {
				return time.Now(), nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("forge: the cloud was ahead %d times", forges)
}

func (l *Liar) forged(version uint64) (*wire.Event, error) {
	raw, err := (&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: Forged, Namespace: forgedNamespace, UID: "6b6b6b6b-0000-0000-0000-000000000000",
			ResourceVersion:   wire.FormatVersion(version),
			Labels:            map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
			CreationTimestamp: metav1.Unix(time.Now().Unix(), 0),
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{forgedAddress}}},
	}).Marshal()
	if err != nil {
		return nil, err
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		return nil, err
	}
	return &wire.Event{
		Type: wire.Added, Object: o, Version: version,
		Frame: wire.AppendProtobufFrame(nil, wire.Added, l.slices.Resource().WireKind(), o.Raw),
	}, nil
}

// take takes the election Lease, which has to be free, of this node, or expired.
func (l *Liar) take(ctx context.Context) error {
	address := l.server.Listener.Addr().(*net.TCPAddr).String()
	return l.hold(ctx, contract.ElectionLease, map[string]string{contract.PoolAddress: address})
}

// reign renews the Leases of the pool as a leader does, whatever the coordinator says.
func (l *Liar) reign(ctx context.Context) {
	tick := time.NewTicker(renews)
	defer tick.Stop()
	for {
		_ = l.take(ctx)
		_ = l.hold(ctx, contract.InformerSync, nil)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l *Liar) hold(ctx context.Context, name string, told map[string]string) error {
	leases := l.leases.CoordinationV1().Leases(contract.LeaseNamespace)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	switch {
	case absent:
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	case err != nil:
		return err
	}
	holder, seconds, now := l.cfg.Node+"_liar", int32(lasts), metav1.NowMicro()
	lease.Annotations, lease.ManagedFields = told, nil
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &holder, &seconds, &now
	if absent {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
