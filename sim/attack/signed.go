package attack

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/operator/certificates"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/trust"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	trustSubject = "trust bundle" // what an authority says that it signs
	listSubject  = "denylist"
)

// signedAttacks are those of somebody with texts that the pool's authority signed: a member with an old one, or a thief
// of the key.
func signedAttacks() []Attack {
	stolen := &place{
		name: "key-stolen", mode: runtime.Weir, nodes: 2, hubs: []int{1}, coordinators: 1, manager: true, enrols: true,
		asksCoordinator: true, flags: swift(),
	}
	return []Attack{
		{
			Number: "85", Position: Member, Goal: "decide for ever whom the pool trusts, with its key",
			Sent:     "a bundle with the number 2^64-1, and one of the year 9998",
			Expected: "refused: no number is beyond the time by more than an hour", Control: "a bundle of now is taken",
			place: led("85"), play: endlessBundle,
		},
		{
			Number: "86", Position: Member, Goal: "refuse all nodes for ever, with the pool's key",
			Sent:     "denylists with the number 2^64-1, entries that hold until 9998, and the time of writing 9998",
			Expected: "refused: no number and no time is ahead by more than an hour", Control: "a denylist of now is taken",
			place: led("86"), play: endlessDenylist,
		},
		{
			Number: "87", Position: Member, Goal: "hold a pool whose key was stolen, although it is rotated",
			Sent: "with the stolen key: an authority of the attacker's as the next one, a denylist of all nodes, both as far " +
				"ahead as is taken, and a hub's certificate that begins in two years, again and again; " +
				"then weir pki rotate --stolen-key",
			Expected: "nobody trusts the stolen key or the attacker's after it",
			Control:  "the hub leads and feeds the pool, with a certificate of the new authority",
			place:    stolen, play: stolenKey,
		},
		{
			Number: "88", Position: Member, Goal: "have a node back that the pool refuses",
			Sent:     "the denylist from before, after the one that refuses the node",
			Expected: "the node stays refused", Control: "both lists are taken when they come in their order", place: led("88"),
			play: olderDenylist,
		},
		{
			Number: "89", Position: Member, Goal: "take the pool back with the key of a former authority",
			Sent:     "a bundle and a denylist that the authority before has signed, later than those of now",
			Expected: "the bundle is refused, and nothing of the list counts",
			Control:  "those of the authority that signs now are taken",
			place:    led("89"), play: formerAuthority,
		},
	}
}

// key is the authority of the place, with its key.
func (x *scene) key() (*pki.Authority, error) {
	a, err := x.vault.Authority(x.place.name)
	if err != nil {
		return nil, err
	}
	files, err := a.Kept()
	if err != nil {
		return nil, err
	}
	s, err := pki.LoadSuccession(files)
	if err != nil {
		return nil, err
	}
	return s.Signer, nil
}

// vouched is a text as it travels: signed by the authority of the place.
func (x *scene) vouched(subject, field, body string) (string, error) {
	a, err := x.key()
	if err != nil {
		return "", err
	}
	return vouchedBy(a, subject, field, body)
}

func vouchedBy(a *pki.Authority, subject, field, body string) (string, error) {
	signature, err := a.Vouch(subject, []byte(body))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("{%q:%s,\"signature\":%q}\n", field, body, base64.StdEncoding.EncodeToString(signature)), nil
}

// bundle is one of the place, signed by an authority, with a number and the authorities next and before; nil: none.
func (x *scene) bundle(by *pki.Authority, number uint64, next, before *pki.Authority) (string, error) {
	b := trust.Bundle{Pool: x.place.name, Number: number, Issued: time.Now().UTC(), Signer: by.Cert().Raw}
	if next != nil {
		b.Next = next.Cert().Raw
	}
	if before != nil {
		b.Before = [][]byte{before.Cert().Raw}
	}
	body, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	return vouchedBy(by, trustSubject, "bundle", string(body))
}

// list is one of the place, signed by an authority: it refuses some nodes.
func (x *scene) list(by *pki.Authority, number uint64, issued, before time.Time, nodes ...string) (string, error) {
	l := trust.Denylist{
		Pool: x.place.name, Number: number, Issued: issued.UTC().Truncate(time.Second), Entries: []trust.Denial{},
	}
	for _, n := range nodes {
		l.Entries = append(l.Entries, trust.Denial{
			Node: n, UID: n, Deleted: true, Before: before.UTC().Truncate(time.Second),
		})
	}
	body, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	return vouchedBy(by, listSubject, "list", string(body))
}

// millis is the number of a text that is written at a time.
func millis(t time.Time) uint64 { return uint64(t.UnixMilli()) } //nolint:gosec // of this century

// refuses judges that a text is refused.
func (x *scene) refuses(ctx context.Context, what, path, text string, err error) {
	if err != nil {
		x.fail(err)
		return
	}
	a := x.bring(ctx, path, text)
	x.judge(a.code == http.StatusBadRequest, "%s: %s %.120s", what, a, strings.TrimSpace(a.body))
}

// takes checks that a text is taken.
func (x *scene) takes(ctx context.Context, what, path, text string, err error) {
	if err != nil {
		x.fail(err)
		return
	}
	a := x.bring(ctx, path, text)
	held := x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: path})
	x.control(a.code == http.StatusNoContent && strings.Contains(held.body, strings.TrimSpace(text)), "%s: %s %.120s",
		what, a, strings.TrimSpace(a.body))
}

func endlessBundle(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	a, err := x.key()
	if err != nil {
		return err
	}
	evil, err := pki.NewPoolAuthority(x.place.name, time.Now())
	if err != nil {
		return err
	}
	for what, number := range map[string]uint64{
		"number 2^64-1": math.MaxUint64, "the year 9998": millis(time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC)),
	} {
		text, err := x.bundle(a, number, evil, nil)
		x.refuses(ctx, what, contract.TrustPath, text, err)
	}
	text, err := x.bundle(a, millis(time.Now()), nil, nil)
	x.takes(ctx, "a bundle of now", contract.TrustPath, text, err)
	return nil
}

func endlessDenylist(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	a, err := x.key()
	if err != nil {
		return err
	}
	now, late := time.Now(), time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		what           string
		number         uint64
		issued, before time.Time
	}{
		{"number 2^64-1", math.MaxUint64, now, now}, {"entries until 9998", millis(now), now, late},
		{"written in 9998", millis(now), late, now},
	} {
		text, err := x.list(a, c.number, c.issued, c.before, "nobody")
		x.refuses(ctx, c.what, contract.DenylistPath, text, err)
	}
	text, err := x.list(a, millis(time.Now()), time.Now(), time.Now(), "gone")
	x.takes(ctx, "a list of now", contract.DenylistPath, text, err)
	member := x.send(ctx, ask{as: "member", at: coordinatorDoor, path: slices1})
	x.control(member.code == http.StatusOK, "a hub of the pool reads: %s", member)
	return nil
}

func olderDenylist(ctx context.Context, x *scene) error {
	a, err := x.key()
	if err != nil {
		return err
	}
	now := time.Now()
	older, err := x.list(a, millis(now.Add(-time.Second)), now, now)
	x.takes(ctx, "the older one", contract.DenylistPath, older, err)
	later, err := x.list(a, millis(now), now, now, "gone")
	x.takes(ctx, "the later one", contract.DenylistPath, later, err)
	again := x.bring(ctx, contract.DenylistPath, older)
	held := x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: contract.DenylistPath})
	kept := strings.Contains(held.body, strings.TrimSpace(later))
	x.judge(kept, "the older one again: %s, the later one counts: %t", again, kept)
	return nil
}

func formerAuthority(ctx context.Context, x *scene) error {
	former, err := x.key()
	if err != nil {
		return err
	}
	now := time.Now()
	next, err := pki.NewPoolAuthority(x.place.name, now.Add(time.Minute)) // a rotation takes longer
	if err != nil {
		return err
	}
	evil, err := pki.NewPoolAuthority(x.place.name, now)
	if err != nil {
		return err
	}
	number := millis(now)
	text, err := x.bundle(former, number, next, nil)
	x.takes(ctx, "the next authority is named", contract.TrustPath, text, err)
	text, err = x.bundle(next, number+1, nil, former)
	x.takes(ctx, "it signs", contract.TrustPath, text, err)
	text, err = x.bundle(former, number+2, evil, nil)
	x.refuses(ctx, "a bundle of the former one", contract.TrustPath, text, err)

	list, err := x.list(next, number+1, now, now, "gone")
	x.takes(ctx, "a list of the one that signs", contract.DenylistPath, list, err)
	list, err = x.list(former, number+2, now, now, x.node(1))
	if err != nil {
		return err
	}
	a := x.bring(ctx, contract.DenylistPath, list)
	member := x.send(ctx, ask{as: "member", at: coordinatorDoor, path: slices1})
	x.judge(member.code == http.StatusOK, "a list of the former one that refuses node 1: %s, node 1 is served: %t", a,
		member.code == http.StatusOK)
	return nil
}

// stolenKey holds a pool by its key for a while; then its administrator says that it was stolen.
func stolenKey(ctx context.Context, x *scene) error {
	if err := x.untilLed(ctx); err != nil {
		return err
	}
	a, err := x.key()
	if err != nil {
		return err
	}
	evil, err := pki.NewPoolAuthority(x.place.name, time.Now())
	if err != nil {
		return err
	}
	// The thief has certificates of the key that no list refuses, as "member" and "viewer" are: they begin when he likes.
	// One of them begins in two years: by such a beginning a machine without a clock knows the time.
	const twoYears = 2 * 365 * 24 * time.Hour
	hub := pki.Must(pki.Hub)
	later, err := a.Grant(hub, pki.Subject{Pool: x.place.name, Node: x.node(2)}, time.Now().Add(twoYears), hub.Life.Usual)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(later.CertPEM, later.KeyPEM)
	if err != nil {
		return err
	}
	x.let("from later", actor{cert: &pair})
	wedge := func() (trusted, denied answer) {
		ahead := time.Now().Add(time.Hour - time.Minute)
		bundle, err := x.bundle(a, millis(ahead), evil, nil)
		list, failed := x.list(a, millis(ahead), time.Now(), ahead, x.node(1), x.node(2))
		if err == nil && failed == nil {
			trusted, denied = x.bring(ctx, contract.TrustPath, bundle), x.bring(ctx, contract.DenylistPath, list)
		}
		x.send(ctx, ask{as: "from later", at: coordinatorDoor, path: slices1})
		return trusted, denied
	}
	trusted, denied := wedge()
	x.note("the thief's bundle: %s, the thief's denylist: %s", trusted, denied)
	x.note("the pool is wedged: %t", within(ctx, patience, func() bool { return !x.leads(ctx, x.node(1)) }))

	c, err := kubernetes.NewForConfig(x.site.Admin())
	if err != nil {
		return err
	}
	before, err := certificates.Rotation(ctx, c, x.place.name)
	if err != nil {
		return err
	}
	order := trust.Order{
		ID: "thief", Settle: pki.LeastSettle.String(), Overlap: pki.LeastOverlap.String(), StolenKey: true,
	}
	if err := until(ctx, "the order to be given", func() bool {
		return certificates.AskRotation(ctx, c, x.place.name, order) == nil
	}); err != nil {
		return err
	}
	var p trust.Progress
	recovered := within(ctx, 3*time.Minute, func() bool {
		wedge()
		p, err = certificates.Rotation(ctx, c, x.place.name)
		return err == nil && p.Order == order.ID && p.Step == trust.Steady && p.Signer != before.Signer && p.Trusted == 1 &&
			x.leads(ctx, x.node(1))
	})
	x.judge(recovered, "after the order: %s, %d trusted, refused %q, node 1 leads and feeds the pool: %t", p.Step,
		p.Trusted, p.Refused, x.leads(ctx, x.node(1)))
	trusted, denied = wedge()
	x.judge(trusted.code != http.StatusNoContent && denied.code != http.StatusNoContent, "the thief again: %s, %s",
		trusted, denied)
	reads := ask{as: "member", at: coordinatorDoor, path: slices1}
	x.judge(x.send(ctx, reads).code != http.StatusOK, "a certificate of the stolen key at the coordinator: %s",
		x.send(ctx, reads))
	own := ask{as: "reader", path: slicesOfA}
	x.control(x.send(ctx, own).code == http.StatusOK, "the hub serves: %s", x.send(ctx, own))
	return nil
}

// leads reports whether a node leads its pool and feeds it, as its hub says: after a theft nobody else can be asked.
func (x *scene) leads(ctx context.Context, node string) bool {
	var s struct {
		Node string `json:"node"`
		Role string `json:"role"`
	}
	a := x.send(ctx, ask{at: healthDoor, path: contract.StatusPath})
	return json.Unmarshal([]byte(a.body), &s) == nil && s.Node == node && s.Role == role.Leader.String()
}
