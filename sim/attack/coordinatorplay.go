package attack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/testca"
)

// manyHealthz asks for health, many times.
func manyHealthz(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	before := x.poolStatus(ctx)
	client, base, err := x.client(coordinatorDoor, actor{}, true)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	const n = 4000
	if err := parallel(ctx, 32, n, func(int) { do(ctx, client, base, actor{}, ask{path: "/healthz"}) }); err != nil {
		return err
	}
	after := x.poolStatus(ctx)
	x.judge(after.Leader == before.Leader, "%d asked, the leader was %s and is %s", n, before.Leader, after.Leader)
	x.control(after.Term == before.Term && after.Ready, "term %s, ready %t", after.Term, after.Ready)
	return nil
}

// othersLease is what node 1 tries with the Lease of node 2.
func othersLease() []ask {
	lease := func(name string) string {
		return fmt.Sprintf(
			`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{%s,"namespace":"kube-node-lease"},`+
				`"spec":{"holderIdentity":"x","leaseDurationSeconds":40}}`,
			name,
		)
	}
	asks := []ask{
		{method: http.MethodPut, path: nodeLeases + "/{node 2}", body: lease(`"name":"{node 2}"`)},
		{
			method: http.MethodPatch, path: nodeLeases + "/{node 2}",
			header: []string{"Content-Type: application/merge-patch+json"}, body: `{"spec":{"holderIdentity":"x"}}`,
		},
		{
			method: http.MethodPatch, path: nodeLeases + "/{node 2}?fieldManager=x&force=true",
			header: []string{"Content-Type: application/apply-patch+yaml"}, body: lease(`"name":"{node 2}"`),
		},
		{method: http.MethodDelete, path: nodeLeases + "/{node 2}"},
		{method: http.MethodPost, path: nodeLeases, body: lease(`"name":"{node 2}"`)},
		{method: http.MethodPost, path: nodeLeases, body: lease(`"generateName":"{node 2}"`)},
		{method: http.MethodPost, path: nodeLeases + "?dryRun=All", body: lease(`"name":"{node 2}"`)},
		{method: http.MethodDelete, path: nodeLeases},
		{method: http.MethodPut, path: nodeLeases + "/{node}/status", body: lease(`"name":"{node}"`)},
		{method: http.MethodPut, path: nodeLeases + "/{node}", body: lease(`"name":"{node 2}"`)},
		{method: http.MethodPut, path: nodeLeases + "/%7Bnode%7D/../{node 2}", body: lease(`"name":"{node 2}"`)},
		{
			method: http.MethodPost, path: "/apis/coordination.k8s.io/v1/namespaces/default/leases",
			body: `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"{node}",` +
				`"namespace":"default"},"spec":{}}`,
		},
		{
			method: http.MethodPost, path: poolLeases,
			body: `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"mine",` +
				`"namespace":"kube-system"},"spec":{}}`,
		},
		{
			method: http.MethodPost, path: "/api/v1/namespaces",
			body: `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"mine"}}`,
		},
	}
	return all(asks, "member", append([]int{404, 415}, refusedWrite...)...)
}

func falseTerms(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	s := x.poolStatus(ctx)
	r, err := forgedRelay(relay.History{}, 9e18)
	if err != nil {
		return err
	}
	l, err := x.lair(ctx, nil, r)
	if err != nil {
		return err
	}
	defer l.stop()
	holder := x.lease(ctx, contract.ElectionLease).Spec.HolderIdentity
	if s.Leader != x.node(1) || holder == nil {
		return fmt.Errorf("node 1 does not lead, but %q", s.Leader)
	}
	x.tellPool(ctx, l.address)
	now := x.lease(ctx, contract.ElectionLease)
	for what, body := range map[string]string{
		"in the leader's name": telling(electionLease(*holder), l.address),
		"in its own":           telling(electionLease(x.node(2)+"_liar"), l.address),
		"in nobody's":          telling(electionLease(""), l.address),
	} {
		body = strings.Replace(body, `"metadata":{`,
			fmt.Sprintf(`"metadata":{"resourceVersion":%q,"uid":%q,`, now.ResourceVersion, now.UID), 1)
		a := x.send(ctx, ask{
			as: "member 2", at: coordinatorDoor, method: http.MethodPut, path: poolLeases + "/" + contract.ElectionLease,
			body: body,
		})
		x.judge(a.code >= 400 && a.code < 500, "an address in the election Lease, %s: %s", what, a)
	}
	x.judge(!within(ctx, 5*time.Second, l.read), "who does not lead is not read")
	for range 3 {
		now := x.poolStatus(ctx)
		x.control(
			now.Leader == s.Leader && now.Term == s.Term && now.Ready, "%s leads under %s, ready %t", now.Leader,
			now.Term, now.Ready,
		)
	}
	return nil
}

func othersPaths(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	s := x.poolStatus(ctx)
	attacker := "member"
	if s.Leader == x.node(1) {
		attacker = "member 2"
	}
	keys := contract.DocumentsPath + "?path=/openid/v1/jwks&accept="
	impersonate := []string{"Impersonate-User: system:node:x"}
	for _, q := range []ask{
		{
			as: attacker, method: http.MethodPut, path: keys,
			header: []string{"Etag: \"x\""}, body: `{"keys":[]}`,
		},
		{as: attacker, method: http.MethodPut, path: keys, header: []string{"Etag: \"x\""}, body: `{"keys":[]}`},
		{as: attacker, method: http.MethodPost, path: contract.RejoinPath, body: "{}"},
		{
			as: "viewer", method: http.MethodPut, path: keys,
			body: `{"keys":[]}`,
		},
		{as: "viewer", method: http.MethodPost, path: contract.PulsePath},
		{as: "viewer", method: http.MethodPost, path: poolLeases, body: electionLease("viewer_1")},
		{as: "viewer", method: http.MethodDelete, path: poolLeases + "/" + contract.ElectionLease},
		{as: attacker, path: slices1, header: impersonate}, {
			as: attacker, path: poolLeases,
			header: []string{"Impersonate-User: system:node:{node}", "Impersonate-Group: " + contract.HubGroup},
		},
		{
			as: "viewer", path: slices1,
			header: []string{
				"Impersonate-User: system:node:x", "Impersonate-Group: " + contract.HubGroup,
				"Impersonate-Group: " + contract.PoolGroupPrefix + "{pool}",
			},
		},
	} {
		q.at, q.codes = coordinatorDoor, refusedWrite
		x.try(ctx, q)
	}
	return nil
}

// lease reads a Lease of the pool.
func (x *scene) lease(ctx context.Context, name string) (l coordinationv1.Lease) {
	a := x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: poolLeases + "/" + name})
	_ = json.Unmarshal([]byte(a.body), &l)
	return l
}

// sound reports whether a Lease is held by a node for no longer than Leases of a pool are, and what it says.
func sound(l coordinationv1.Lease, node string) (bool, string) {
	holder, seconds, renewed := "", int32(0), time.Time{}
	if l.Spec.HolderIdentity != nil {
		holder = contract.NodeOfIdentity(*l.Spec.HolderIdentity)
	}
	if l.Spec.LeaseDurationSeconds != nil {
		seconds = *l.Spec.LeaseDurationSeconds
	}
	if l.Spec.RenewTime != nil {
		renewed = l.Spec.RenewTime.Time
	}
	well := holder == node && seconds <= longestLease && renewed.Before(time.Now().Add(5*time.Minute)) &&
		len(l.Finalizers) == 0 && len(l.OwnerReferences) == 0
	return well, fmt.Sprintf(
		"held by %q for %d s, renewed %s, %d finalizers", holder, seconds, renewed.UTC().Format(time.DateOnly),
		len(l.Finalizers)+len(l.OwnerReferences),
	)
}

// stillLed judges by what becomes of the pool: its leader is that of before, and goes on renewing.
func (x *scene) stillLed(ctx context.Context, name string) {
	var what string
	led := within(ctx, patience, func() bool {
		var well bool
		well, what = sound(x.lease(ctx, name), x.node(1))
		return well
	})
	x.judge(led, "afterwards %s is %s", name, what)
	version := x.lease(ctx, name).ResourceVersion
	renewed := within(ctx, patience, func() bool {
		l := x.lease(ctx, name)
		return l.ResourceVersion != version && l.ResourceVersion != ""
	})
	x.control(renewed || !led, "the leader renews %s: %t", name, renewed)
	s := x.poolStatus(ctx)
	x.judge(s.Leader == x.node(1), "leader: %q", s.Leader)
}

// overwrite writes a Lease in every way that there is. change returns the new object.
func (x *scene) overwrite(ctx context.Context, name string, change func(*coordinationv1.Lease)) error {
	put := func(method, path string, header []string, l coordinationv1.Lease) {
		l.APIVersion, l.Kind, l.ManagedFields = "coordination.k8s.io/v1", "Lease", nil
		data, _ := json.Marshal(l)
		a := x.send(
			ctx,
			ask{as: "member 2", at: coordinatorDoor, method: method, path: path, header: header, body: string(data)},
		)
		for range 5 { // the leader renewed it meanwhile
			if a.code != http.StatusConflict || method != http.MethodPut {
				break
			}
			l.ResourceVersion = x.lease(ctx, name).ResourceVersion
			data, _ = json.Marshal(l)
			a = x.send(
				ctx,
				ask{
					as: "member 2", at: coordinatorDoor, method: method, path: path, header: header, body: string(data),
				},
			)
		}
		x.judge(a.code >= 400 && a.code < 500, "%s %s: %s", method, name, a)
	}
	path := poolLeases + "/" + name
	l := x.lease(ctx, name)
	if l.Name == "" {
		return fmt.Errorf("there is no Lease %s", name)
	}
	change(&l)
	put(http.MethodPut, path, nil, l)
	bare := l
	bare.ResourceVersion, bare.UID = "", ""
	put(http.MethodPatch, path, []string{"Content-Type: application/merge-patch+json"}, bare)
	put(http.MethodPatch, path, []string{"Content-Type: application/strategic-merge-patch+json"}, bare)
	put(
		http.MethodPatch, path+"?fieldManager=x&force=true", []string{"Content-Type: application/apply-patch+yaml"},
		bare,
	)
	put(http.MethodPost, poolLeases, nil, bare)
	return nil
}

// drop deletes a Lease, and at once takes it.
func (x *scene) drop(ctx context.Context, name string, then func(*coordinationv1.Lease)) {
	l := x.lease(ctx, name)
	a := x.send(ctx, ask{as: "member 2", at: coordinatorDoor, method: http.MethodDelete, path: poolLeases + "/" + name})
	x.judge(a.code >= 400 && a.code < 500, "DELETE %s: %s", name, a)
	if a.code >= 300 {
		return
	}
	then(&l)
	l.APIVersion, l.Kind, l.ResourceVersion, l.UID = "coordination.k8s.io/v1", "Lease", "", ""
	data, _ := json.Marshal(l)
	a = x.send(
		ctx, ask{as: "member 2", at: coordinatorDoor, method: http.MethodPost, path: poolLeases, body: string(data)},
	)
	x.judge(a.code >= 400 && a.code < 500, "then POST: %s", a)
}

func hold(holder string, seconds int32, renewed time.Time) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &holder, &seconds
		l.Spec.RenewTime.Time = renewed
	}
}

func electNobody(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	ghost := hold("ghost_1", forAges, time.Now())
	x.drop(ctx, contract.ElectionLease, ghost)
	if err := x.untilLed(ctx); err == nil {
		_ = x.overwrite(ctx, contract.ElectionLease, ghost)
	}
	x.stillLed(ctx, contract.ElectionLease)
	return nil
}

func freshForEver(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	var holder string
	if err := until(ctx, "the leader to say that the pool is fresh", func() bool {
		l := x.lease(ctx, contract.InformerSync)
		if l.Spec.HolderIdentity != nil {
			holder = *l.Spec.HolderIdentity
		}
		return holder != ""
	}); err != nil {
		return err
	}
	for _, change := range []func(*coordinationv1.Lease){
		hold(holder, forAges, time.Now()), hold(holder, 40, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)), hold(
			x.node(2)+"_1", forAges, time.Now(),
		),
	} {
		if err := x.overwrite(ctx, contract.InformerSync, change); err != nil {
			x.note("%v", err)
		}
	}
	x.drop(ctx, contract.InformerSync, hold(holder, forAges, time.Now()))
	x.stillLed(ctx, contract.InformerSync)
	return nil
}

func usurp(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	before := x.poolStatus(ctx)
	finalize := func(l *coordinationv1.Lease) { l.Finalizers = []string{"attack.example.com/keep"} }
	adopt := func(l *coordinationv1.Lease) {
		l.OwnerReferences = nil
		_ = json.Unmarshal(
			[]byte(`{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"y"}]}`), &l.ObjectMeta,
		)
	}
	for _, change := range []func(*coordinationv1.Lease){
		finalize, adopt, hold(x.node(2)+"_x", 15, time.Now()), hold("", 15, time.Now()),
	} {
		if err := x.overwrite(ctx, contract.ElectionLease, change); err != nil {
			x.note("%v", err)
		}
	}
	for range 10 {
		x.drop(ctx, contract.ElectionLease, hold(x.node(2)+"_x", 15, time.Now()))
	}
	a := x.send(ctx, ask{as: "member 2", at: coordinatorDoor, method: http.MethodDelete, path: poolLeases})
	x.judge(a.code >= 400 && a.code < 500, "deletecollection: %s", a)
	x.stillLed(ctx, contract.ElectionLease)
	x.judge(x.poolStatus(ctx).Term == before.Term, "the term was %s and is %s", before.Term, x.poolStatus(ctx).Term)
	return nil
}

// foreignReplica knocks at the etcd of a replica with certificates of a replica of another pool.
func foreignReplica(ctx context.Context, x *scene) error {
	own, err := x.vault.Authority(x.place.name)
	if err != nil {
		return err
	}
	address, err := x.vault.Coordinator(x.place.name)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	peer := net.JoinHostPort(host, strconv.Itoa(contract.PeerPort))
	knock := func(cert tls.Certificate) answer {
		client := &http.Client{
			Timeout: answerPatience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
				RootCAs: own.Pool(), Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
			}},
		}
		return do(ctx, client, "https://"+peer, actor{}, ask{path: "/members"})
	}
	for _, c := range []struct {
		user  string
		group []string
	}{
		{contract.ReplicaUserPrefix + "1", []string{contract.ReplicaGroup, contract.PoolGroupPrefix + foreign}},
		{contract.ReplicaUserPrefix + "a", []string{contract.ReplicaGroup, contract.PoolGroupPrefix + foreign}},
		{
			contract.ReplicaUserPrefix + foreign + ":1",
			[]string{contract.ReplicaGroup, contract.PoolGroupPrefix + foreign},
		},
		{contract.ReplicaUserPrefix + "1", nil},
		{contract.NodeUserPrefix + x.node(1), []string{contract.HubGroup, contract.PoolGroupPrefix + x.place.name}},
	} {
		pair, err := own.Issue(
			testca.Request{CommonName: c.user, Organizations: c.group, Hosts: []string{host}, Client: true},
		)
		if err != nil {
			return err
		}
		cert, err := pair.TLS()
		if err != nil {
			return err
		}
		a := knock(cert)
		x.judge(a.code == 0 || a.code == 401 || a.code == 403, "%s %v: %s", c.user, c.group, a)
	}
	a := knock(tls.Certificate{})
	x.judge(a.code == 0 || a.code == 401 || a.code == 403, "no certificate: %s", a)
	data, err := x.vault.Kept(runtime.ReplicaOf(x.place.name, 2))
	if err != nil {
		return err
	}
	both := credential.KeptFile(filepath.Join(filepath.Dir(data), "certificates"), weirpki.Replica)
	cert, err := tls.LoadX509KeyPair(both, both)
	if err != nil {
		return err
	}
	a = knock(cert)
	x.control(a.code == http.StatusOK, "replica 2's own: %s", a)
	return nil
}
