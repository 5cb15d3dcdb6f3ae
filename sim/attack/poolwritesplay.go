package attack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/testca"
)

// delegated marks a Lease as that of a node that is cut off, as its hub does.
const delegated = `"labels":{"openyurt.io/delegate-heartbeat":"true"},` +
	`"annotations":{"openyurt.io/delegate-heartbeat":"true"},`

// makeOwn makes the Lease of a node at the coordinator, as its hub would.
func (x *scene) makeOwn(ctx context.Context, n int) error {
	q := ask{
		as: "member " + strconv.Itoa(n), at: coordinatorDoor, method: http.MethodPost, path: nodeLeases,
		body:  ownLease(x.node(n), "", fmt.Sprintf(`"holderIdentity":%q,`, x.node(n))),
		codes: []int{http.StatusCreated, http.StatusConflict},
	}
	if a := x.insist(ctx, q); !a.right(q) {
		return fmt.Errorf("make the Lease of %s: %s %.200s", x.node(n), a, a.body)
	}
	return nil
}

// hugeLease poisons the list of nodes that are cut off, and then cuts one off.
func hugeLease(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	if err := errors.Join(nodeLeasesExist(ctx, x), x.makeOwn(ctx, 3)); err != nil {
		return err
	}
	path := nodeLeases + "/" + x.node(3)
	huge, some := strings.Repeat("x", 1_100_000), strings.Repeat("y", 5000)
	refused := []int{http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}
	try := func(header, query, body string) {
		x.try(ctx, ask{
			as: "member 3", at: coordinatorDoor, method: http.MethodPatch, path: path + query, header: []string{header},
			body: body, codes: refused,
		})
	}
	x.check(ctx, ask{
		as: "member 3", at: coordinatorDoor, method: http.MethodPatch, path: path, header: []string{mergePatch},
		body: ownLease(x.node(3), delegated, fmt.Sprintf(`"holderIdentity":%q,`, x.node(3))), codes: ok,
	})
	for _, meta := range []string{
		`"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"` + x.node(3) + `","uid":"` + some + `"}],`,
		`"labels":{"openyurt.io/delegate-heartbeat":"` + some + `"},`, `"annotations":{"openyurt.io/delegate-heartbeat":"` +
			some + `"},`,
		`"annotations":{"weir/pool-address":"` + some + `"},`, `"finalizers":["` + some + `"],`,
	} {
		try(mergePatch, "", ownLease(x.node(3), meta, ""))
	}
	for i := range 60 { // each manager of an apply stays in the object
		a := x.insist(ctx, ask{
			as: "member 3", at: coordinatorDoor, method: http.MethodPatch, header: []string{applyPatch},
			path: path + "?force=true&fieldManager=" + strings.Repeat("m", 100) + strconv.Itoa(i),
			body: ownLease(x.node(3), delegated, ""),
		})
		if a.code != http.StatusOK && !slices.Contains(refused, a.code) {
			x.note("apply %d: %s", i, a)
		}
	}
	try(mergePatch, "", ownLease(x.node(3), delegated, `"holderIdentity":"`+huge+`",`))
	try(strategicPatch, "", ownLease(x.node(3), delegated, `"holderIdentity":"`+huge+`",`))
	try(applyPatch, "?fieldManager=x&force=true", ownLease(x.node(3), delegated, `"holderIdentity":"`+huge+`",`))
	a := x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: path})
	x.judge(len(a.body) < 4<<10, "the Lease has %d bytes", len(a.body))

	x.judge(x.spokenFor(ctx), "node 2 is cut off afterwards, and is forwarded")
	return nil
}

// spokenFor cuts node 2 off, and reports whether its heartbeats reach the cloud all the same.
func (x *scene) spokenFor(ctx context.Context) bool {
	x.site.Link(x.place.name).Cut(link.Both, x.node(2))
	defer x.site.Link(x.place.name).Heal(link.Both, x.node(2))
	leases := x.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace)
	path := nodeLeases + "/" + x.node(2)
	return within(ctx, patience, func() bool {
		// The kubelet of node 2 goes on.
		var l coordinationv1.Lease
		a := x.send(ctx, ask{as: "kubelet 2", at: secondHub, path: path, header: []string{kubeletAgent}})
		if json.Unmarshal([]byte(a.body), &l) == nil && l.Name != "" {
			now := metav1.NewMicroTime(time.Now())
			l.Spec.RenewTime = &now
			l.APIVersion, l.Kind = "coordination.k8s.io/v1", "Lease"
			body, _ := json.Marshal(l)
			x.send(ctx, ask{
				as: "kubelet 2", at: secondHub, method: http.MethodPut, path: path, header: []string{kubeletAgent},
				body: string(body),
			})
		}
		in, err := leases.Get(ctx, x.node(2), metav1.GetOptions{})
		return err == nil && in.Annotations[contract.DelegateHeartbeat] == contract.Delegated
	})
}

// fullStore writes more to the coordinator's etcd than it may hold.
func fullStore(ctx context.Context, x *scene) error {
	if err := x.makeOwn(ctx, 2); err != nil {
		return err
	}
	codes := map[int]int{}
	for i := range 400 {
		a := x.send(ctx, ask{
			as: "member 2", at: coordinatorDoor, method: http.MethodPatch, path: nodeLeases + "/" + x.node(2),
			header: []string{mergePatch},
			body:   `{"spec":{"holderIdentity":"` + strconv.Itoa(i) + strings.Repeat("x", 1_400_000) + `"}}`,
		})
		codes[a.code]++
	}
	x.judge(codes[http.StatusRequestEntityTooLarge]+codes[http.StatusTooManyRequests]+
		codes[http.StatusUnprocessableEntity]+
		codes[http.StatusForbidden] == 400, "400 times 1.4 MB: %v", codes)
	a := x.send(ctx, ask{
		as: "member", at: coordinatorDoor, method: http.MethodPost, path: poolLeases, body: electionLease(x.node(1) + "_1"),
	})
	x.judge(a.code == http.StatusCreated, "then the election Lease: %s", a)
	own := ask{
		as: "member", at: coordinatorDoor, method: http.MethodPost, path: nodeLeases, codes: []int{http.StatusCreated},
		body: ownLease(x.node(1), "", fmt.Sprintf(`"holderIdentity":%q,`, x.node(1))),
	}
	x.check(ctx, own)
	x.check(ctx, ask{
		as: "member", at: coordinatorDoor, method: http.MethodPatch, path: nodeLeases + "/" + x.node(1),
		header: []string{mergePatch},
		body:   `{"spec":{"renewTime":"{now}"}}`, codes: ok,
	})
	return nil
}

// innerAddresses tells the coordinator to read where only its own machine gets.
func innerAddresses(refused []int) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error {
		if err := x.makeOwn(ctx, 3); err != nil {
			return err
		}
		q := ask{
			as: "member 3", at: coordinatorDoor, method: http.MethodPatch, path: nodeLeases + "/" + x.node(3),
			header: []string{mergePatch},
		}
		telling := func(address string) ask {
			q := q
			q.body = fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, contract.PoolAddress, address)
			return q
		}
		for _, address := range []string{
			"169.254.169.254:80", "169.254.2.1:10268", "[fe80::1]:80", "[fe80::1%lo]:80", "[::ffff:169.254.169.254]:80",
			"224.0.0.1:80", "[ff02::1]:80",
			"0.0.0.0:22", "[::]:22", "[::ffff:0.0.0.0]:22", "metadata.google.internal:80", "10.0.0.7:0",
		} {
			a := x.insist(ctx, telling(address))
			x.judge(slices.Contains(refused, a.code), "%s: %s", address, a)
		}
		near, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer near.Close()
		for _, address := range []string{near.Addr().String(), contract.PoolAddressReverse} {
			q := telling(address)
			q.codes = ok
			x.check(ctx, q)
		}
		return nil
	}
}

// foreignLine opens lines, and asks for those to be taken for the leader's.
func foreignLine(line string) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error {
		if err := x.untilLed(ctx); err != nil {
			return err
		}
		before := x.poolStatus(ctx)
		authority, err := x.vault.Authority(x.place.name)
		if err != nil {
			return err
		}
		ended, err := authority.Issue(testca.Request{
			CommonName:    contract.NodeUserPrefix + x.node(1),
			Organizations: []string{contract.PoolGroupPrefix + x.place.name, contract.HubGroup}, Client: true,
			Lifetime: -time.Hour,
		})
		if err != nil {
			return err
		}
		if err := x.certify("ended", ended); err != nil {
			return err
		}
		for _, who := range []string{"ended", "foreigner", "shared foreigner", "viewer", ""} {
			a := x.send(ctx, ask{as: who, at: coordinatorDoor, wire: line})
			x.judge(a.code == 0 || a.code == http.StatusUnauthorized || a.code == http.StatusForbidden, "a line of %q: %s", who,
				a)
		}
		// A line that stays, as the one who would be read.
		who, err := x.who("member 2")
		if err != nil {
			return err
		}
		waits, err := x.dial(ctx, coordinatorDoor, who, "http/1.1")
		if err != nil {
			return err
		}
		defer waits.Close()
		if _, err := waits.Write([]byte(line)); err != nil {
			return err
		}
		answered := make([]byte, len("HTTP/1.1 101"))
		_ = waits.SetReadDeadline(time.Now().Add(answerPatience))
		_, err = waits.Read(answered)
		x.control(err == nil && string(answered) == "HTTP/1.1 101", "its own line: %q", answered)
		holder := x.lease(ctx, contract.ElectionLease).Spec.HolderIdentity
		if holder == nil {
			return errors.New("nobody leads")
		}
		now := x.lease(ctx, contract.ElectionLease)
		for what, body := range map[string]string{
			"in the leader's name": telling(electionLease(*holder), contract.PoolAddressReverse),
			"in its own":           telling(electionLease(x.node(2)+"_liar"), contract.PoolAddressReverse),
		} {
			body = strings.Replace(body, `"metadata":{`,
				fmt.Sprintf(`"metadata":{"resourceVersion":%q,"uid":%q,`, now.ResourceVersion, now.UID), 1)
			a := x.send(ctx, ask{
				as: "member 2", at: coordinatorDoor, method: http.MethodPut, path: poolLeases + "/" + contract.ElectionLease,
				body: body,
			})
			x.judge(a.code == http.StatusForbidden || a.code == http.StatusConflict, "reverse in the election Lease, %s: %s",
				what, a)
		}
		after := x.poolStatus(ctx)
		x.judge(after.Leader == before.Leader && after.Term == before.Term && after.Ready,
			"%s led under %s, and %s leads under %s, ready %t",
			before.Leader, before.Term, after.Leader, after.Term, after.Ready)
		return nil
	}
}

// othersAtLeaderHub asks a leader hub about the Lease of its own node, as the hub of another one.
func othersAtLeaderHub(ctx context.Context, x *scene) error {
	who, err := x.who("member 2")
	if err != nil {
		return err
	}
	address, _, err := x.address(hubDoor)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	base := "https://" + net.JoinHostPort(host, strconv.Itoa(contract.HubPoolPort))
	client := &http.Client{Timeout: answerPatience, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		//nolint:gosec // an attacker does not mind
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*who.cert}, MinVersion: tls.VersionTLS13,
	}}}
	defer client.CloseIdleConnections()
	send := func(method, name, body string) answer {
		path := nodeLeases
		if name != "" {
			path += "/" + name
		}
		return do(ctx, client, base, actor{}, ask{method: method, path: path, body: body}.named(x.ground))
	}
	held := func(node string) string { return fmt.Sprintf(`"holderIdentity":%q,`, node) }
	another := x.node(1)
	if err := until(ctx, "the leader hub to take the Lease of a follower", func() bool {
		a := send(http.MethodPost, "", ownLease(x.node(2), "", held(x.node(2))))
		return a.code == http.StatusCreated || a.code == http.StatusConflict
	}); err != nil {
		return err
	}
	for _, a := range []answer{
		send(http.MethodGet, another, ""),
		send(http.MethodPut, another, ownLease(another, `"resourceVersion":"1",`, held(another))),
		send(http.MethodPost, "", ownLease(another, "", held(another))),
		send(http.MethodPut, x.node(2), ownLease(another, `"resourceVersion":"1",`, held(another))),
		send(http.MethodDelete, another, ""), send(http.MethodPatch, another, `{"spec":{"holderIdentity":"x"}}`),
		send(http.MethodGet, "", ""),
	} {
		x.judge(a.code >= 400 && (a.code < 500 || strings.Contains(a.body, "does not show")), "%s", a)
	}
	a := send(http.MethodGet, x.node(2), "")
	x.control(a.code == http.StatusOK, "its own Lease: %s", a)
	return nil
}

// manyWrites changes its own Lease as often as it can.
func manyWrites(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	if err := x.makeOwn(ctx, 3); err != nil {
		return err
	}
	before := x.poolStatus(ctx)
	who, err := x.who("member 3")
	if err != nil {
		return err
	}
	client, base, err := x.client(coordinatorDoor, who, false)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	// More at once than may be: a slow machine, too, sends faster than the rate then.
	const n, atOnce = 2000, 2 * limit.WriteBurst
	began := time.Now()
	var taken, later, told, others atomic.Int64
	err = parallel(ctx, atOnce, n, func(i int) {
		a := do(ctx, client, base, who, ask{
			method: http.MethodPatch, path: nodeLeases + "/" + x.node(3), header: []string{mergePatch},
			body: fmt.Sprintf(`{"spec":{"holderIdentity":"%s_%d%s"}}`, x.node(3), i, strings.Repeat("x", 200)),
		})
		switch {
		case a.code == http.StatusOK:
			taken.Add(1)
		case a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") != "":
			told.Add(1)
			fallthrough
		case a.code == http.StatusTooManyRequests:
			later.Add(1)
		default:
			others.Add(1)
		}
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	most := int64(limit.WriteBurst+limit.WriteRate*took.Seconds()) + 1 // a busy machine sends more slowly
	x.judge(later.Load() > 0 && told.Load() == later.Load() && taken.Load() <= most,
		"of %d in %v: %d taken, of %d that may be, %d are refused with 429, %d of them told when, %d otherwise",
		n, took.Round(time.Second), taken.Load(), most, later.Load(), told.Load(), others.Load())
	after := x.poolStatus(ctx)
	x.judge(after.Leader == before.Leader && after.Term == before.Term, "%s led under %s, and %s leads under %s",
		before.Leader, before.Term, after.Leader, after.Term)
	own := ask{
		as: "member 2", at: coordinatorDoor, method: http.MethodPost, path: nodeLeases,
		codes: []int{http.StatusCreated, http.StatusConflict},
		body:  ownLease(x.node(2), "", fmt.Sprintf(`"holderIdentity":%q,`, x.node(2))),
	}
	a := x.send(ctx, own)
	x.control(a.right(own), "another node writes: %s", a)
	again := ask{
		as: "member 3", at: coordinatorDoor, method: http.MethodPatch,
		path: nodeLeases + "/" + x.node(3), header: []string{mergePatch},
		body: `{"spec":{"renewTime":"{now}"}}`, codes: ok,
	}
	x.check(ctx, again)
	return nil
}
