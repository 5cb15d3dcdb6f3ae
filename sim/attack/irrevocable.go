package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/thief"
)

// deserted is a pool in which no hub runs: weir-manager alone is attacked. The first node is the attacker's, and it
// runs a replica of the coordinator.
func deserted(number string) *place {
	return &place{name: "desert-" + number, mode: runtime.Weir, nodes: 3, manager: true, enrols: true}
}

func irrevocableAttacks() []Attack {
	const goal = "never lose a certificate, and let nobody else lose or get one"
	return []Attack{
		{
			Number: "125", Position: Member, Goal: goal,
			Sent:     "33 addresses in the own status, as the node of a coordinator, then it is deleted",
			Expected: "it is denied, and so is the next one that is deleted; one that joins gets a certificate",
			Control:  "all had certificates before, and the node beside it keeps them", place: deserted("125"),
			play: manyAddresses(33),
		},
		{
			Number: "126", Position: Member, Goal: goal, Sent: "the same with a megabyte of addresses", Expected: "likewise",
			Control: "likewise", place: deserted("126"), play: manyAddresses(11_000),
		},
		{
			Number: "127", Position: Member, Goal: "take other replicas of the coordinator along",
			Sent:     "their addresses in the own status, and a certificate for them; then it is deleted",
			Expected: "its own certificates are denied, those of the others are not, old or new", Control: "all count before",
			place: deserted("127"), play: othersAddresses,
		},
		{
			Number: "128", Position: Member, Goal: "hold up what the pool gives back after the cloud was restored",
			Sent: "garbage in returned-<pool>, before a list that the pool's authority has signed", Expected: "that list counts",
			Control: "a signed list alone counts", place: deserted("128"), play: garbageReturned,
		},
	}
}

// desk is weir-manager, as these attacks see it.
type desk struct {
	*scene
	authority *weirpki.Succession
}

func (x *scene) desk(ctx context.Context) (*desk, error) {
	a, err := x.vault.Authority(x.place.name)
	if err != nil {
		return nil, err
	}
	files, err := a.Kept()
	if err != nil {
		return nil, err
	}
	s, err := weirpki.LoadSuccession(files)
	d := &desk{x, s}
	for n := range x.place.nodes {
		if err == nil {
			_, err = d.certificate(ctx, weirpki.Hub, x.node(n+1))
		}
	}
	return d, err
}

// certificate is one that a node asks for, and that has to be signed.
func (d *desk) certificate(ctx context.Context, k weirpki.Kind, node string, hosts ...string) ([]byte, error) {
	r, err := thief.Ask(ctx, d.site, k, weirpki.Subject{Pool: d.place.name, Node: node, Hosts: hosts})
	if err == nil && !r.Signed {
		err = fmt.Errorf("%s: %s", r.Name, r.Wrong)
	}
	return r.PEM, err
}

// runsReplica lets a node run a replica of the coordinator, as an administrator does.
func (d *desk) runsReplica(ctx context.Context, n int) error {
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"replica-%d"}}}`, contract.CoordinatorLabel, n)
	_, err := d.admin.CoreV1().Nodes().Patch(ctx, d.node(n), types.MergePatchType, label, metav1.PatchOptions{})
	return err
}

// claims lets a node say that it has some addresses.
func (d *desk) claims(ctx context.Context, n int, addresses []string) error {
	var all []corev1.NodeAddress
	for _, a := range addresses {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": all}})
	if err != nil {
		return err
	}
	as := "kubelet"
	if n > 1 {
		as = fmt.Sprintf("kubelet %d", n)
	}
	a := d.send(ctx, ask{
		as: as, at: cloudDoor, method: http.MethodPatch, path: "/api/v1/nodes/" + d.node(n) + "/status",
		header: []string{mergePatch}, body: string(body),
	})
	if a.code != http.StatusOK {
		return fmt.Errorf("the addresses of %s: %s", d.node(n), a)
	}
	return nil
}

// joins is a node that comes into the pool, and what becomes of its request. When it has a certificate weir-manager has
// seen all that was before.
func (d *desk) joins(ctx context.Context, name, address string) error {
	if err := d.vault.Cloud().CreateNodes(ctx, cloud.Node{Name: name, Pool: d.place.name, Address: address}); err != nil {
		return err
	}
	_, err := d.certificate(ctx, weirpki.Hub, name)
	return err
}

// config is the data of a ConfigMap of the pool; none: it is not there.
func (d *desk) config(ctx context.Context, prefix string) map[string]string {
	c, err := d.admin.CoreV1().ConfigMaps(contract.KeyNamespace).Get(ctx, prefix+d.place.name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return c.Data
}

// denied is what hubs of the pool refuse now.
func (d *desk) denied(ctx context.Context) *trust.HeldDenylist {
	h := trust.NewDenylist(trust.DenylistConfig{
		Pool: d.place.name, Trusted: d.authority.Trusted, Logger: slog.New(slog.DiscardHandler),
	})
	if text := d.config(ctx, contract.DenylistPrefix)[contract.DenylistKey]; text != "" {
		_, _ = h.Take([]byte(text)) // what cannot be taken denies nobody
	}
	return h
}

// denies waits until a node is denied, for as long as that may take.
func (d *desk) denies(ctx context.Context, node string) bool {
	return within(ctx, 20*time.Second, func() bool {
		for _, e := range d.denied(ctx).Entries() {
			if e.Node == node {
				return true
			}
		}
		return false
	})
}

func (d *desk) refuses(ctx context.Context, pem []byte) bool {
	certs, err := weirpki.ParseCertificates(pem)
	return err == nil && d.denied(ctx).Refuse(certs[0]) != nil
}

func (d *desk) deletes(ctx context.Context, node string) error {
	return d.admin.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
}

// manyAddresses lets the node of a coordinator say that it has some addresses more than fit anywhere.
func manyAddresses(n int) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error {
		d, err := x.desk(ctx)
		if err != nil {
			return err
		}
		if err := d.runsReplica(ctx, 1); err != nil {
			return err
		}
		own := []string{"127.66.0.1"}
		if err := d.claims(ctx, 1, own); err != nil {
			return err
		}
		mine, err := d.certificate(ctx, weirpki.Coordinator, x.node(1), own...)
		if err != nil {
			return err
		}
		beside, err := d.certificate(ctx, weirpki.Hub, x.node(2))
		if err != nil {
			return err
		}
		many := own
		for i := range n - 1 {
			many = append(many, fmt.Sprintf("fd00:0:0:0:6666:6666:%x:%x", i>>16+0x1000, i&0xffff+0x1000))
		}
		if err := d.claims(ctx, 1, many); err != nil {
			return err
		}
		// so that weir-manager has seen the addresses, and taken them for what it does.
		_ = d.joins(ctx, x.place.name+"-4", "127.66.0.4")
		x.control(!d.refuses(ctx, mine) && !d.refuses(ctx, beside), "all certificates count")
		if err := d.deletes(ctx, x.node(1)); err != nil {
			return err
		}
		x.judge(d.denies(ctx, x.node(1)) && d.refuses(ctx, mine), "the liar is denied")
		if err := d.deletes(ctx, x.node(3)); err != nil {
			return err
		}
		x.judge(d.denies(ctx, x.node(3)), "the next one that is deleted is denied")
		err = d.joins(ctx, x.place.name+"-5", "127.66.0.5")
		x.judge(err == nil, "one that joins gets a certificate: %v", err)
		x.control(!d.refuses(ctx, beside), "that of the node beside it counts")
		return nil
	}
}

// othersAddresses lets the node of one replica claim the addresses of another.
func othersAddresses(ctx context.Context, x *scene) error {
	d, err := x.desk(ctx)
	if err != nil {
		return err
	}
	own, hers := "127.66.1.1", "127.66.1.2"
	for n, addresses := range map[int][]string{1: {own, hers}, 2: {hers}} {
		if err := d.runsReplica(ctx, n); err != nil {
			return err
		}
		if err := d.claims(ctx, n, addresses); err != nil {
			return err
		}
	}
	var signed [3][]byte
	for i, c := range []struct {
		node  int
		hosts []string
	}{{2, []string{hers}}, {1, []string{own, hers}}, {1, []string{hers}}} {
		if signed[i], err = d.certificate(ctx, weirpki.Coordinator, x.node(c.node), c.hosts...); err != nil {
			return err
		}
	}
	if err := d.joins(ctx, x.place.name+"-4", "127.66.1.4"); err != nil {
		return err
	}
	x.control(!d.refuses(ctx, signed[0]) && !d.refuses(ctx, signed[1]) && !d.refuses(ctx, signed[2]),
		"all certificates count")
	if err := d.deletes(ctx, x.node(1)); err != nil {
		return err
	}
	denied := d.denies(ctx, x.node(1))
	x.judge(denied && d.refuses(ctx, signed[1]) && d.refuses(ctx, signed[2]), "both of the liar's are denied")
	x.judge(denied && !d.refuses(ctx, signed[0]), "that of the other replica is not")
	again, err := d.certificate(ctx, weirpki.Coordinator, x.node(2), hers)
	if err == nil {
		x.judge(!d.refuses(ctx, again), "its next one is not")
	}
	return err
}

// garbageReturned lets one hub write what it likes beside what the pool gives back.
func garbageReturned(ctx context.Context, x *scene) error {
	d, err := x.desk(ctx)
	if err != nil {
		return err
	}
	gives := func(before, node string, number uint64) error {
		l := trust.Denylist{Pool: x.place.name, Number: number, Issued: time.Now().UTC().Truncate(time.Millisecond)}
		l.Entries = []trust.Denial{{Node: node, UID: "gone", Deleted: true, Before: time.Now().UTC().Truncate(time.Second)}}
		text, err := l.Sign(d.authority.Signer)
		if err != nil {
			return err
		}
		body, err := json.Marshal(corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{
				APIVersion: "v1", Kind: "ConfigMap",
			}, ObjectMeta: metav1.ObjectMeta{Name: contract.ReturnedPrefix + x.place.name},
			Data: map[string]string{contract.DenylistKey: before + string(text)},
		})
		if err != nil {
			return err
		}
		a := d.send(ctx, ask{
			as: "hub 2", at: cloudDoor, method: http.MethodPut, path: "/api/v1/namespaces/" + contract.KeyNamespace +
				"/configmaps/" + contract.ReturnedPrefix + x.place.name, body: string(body),
		})
		if a.code != http.StatusOK {
			return fmt.Errorf("what the pool gives back: %s", a)
		}
		return nil
	}
	if err := gives("", "gone-1", 1); err != nil {
		return err
	}
	x.control(d.denies(ctx, "gone-1"), "a list alone counts")
	for i, garbage := range []string{
		strings.Repeat("garbage\n", 4), strings.Repeat("{}\n", 40), strings.Repeat(`{"list":{},"signature":"AAAA"}`+"\n", 8),
	} {
		node := fmt.Sprintf("gone-%d", i+2)
		if err := gives(garbage, node, uint64(i+2)); err != nil {
			return err
		}
		x.judge(d.denies(ctx, node), "after %d bytes of %.8s", len(garbage), garbage)
	}
	return nil
}
