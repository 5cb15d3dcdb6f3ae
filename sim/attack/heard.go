package attack

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/process"
)

const heardLease = "/apis/coordination.k8s.io/v1/namespaces/" + contract.KeyNamespace + "/leases/" +
	contract.HeardPrefix + "{pool}"

// reports is a report of a pool.
func reports(text string) string {
	return fmt.Sprintf(`{"spec":{"holderIdentity":%q}}`, text)
}

// heardAttacks go to the Lease in which a leader reports who was heard.
func heardAttacks() []Attack {
	control := ask{
		as: "forwarder", method: http.MethodPatch, path: heardLease, header: []string{mergePatch},
		body: reports(heartbeat.Report{}.String()), codes: ok,
	}
	return []Attack{
		{
			Number: "65b", Position: Foreigner, Goal: "report nodes of another pool as heard",
			Sent: "PATCH and DELETE of the Lease of the pool's reports, by a leader of another pool, and as kubelet, hub and " +
				"forwarder without the name of a node", Expected: "403 or 405", Control: "a report by a leader of the pool",
			prepare: reportsExist, play: foreignReports, controls: []ask{control},
		},
		{
			Number: "65c", Position: Leader, Goal: "say itself which nodes weir-manager has renewed, or more than a report",
			Sent: "the annotation of receipts, a label, a finalizer, a duration, a renewTime, 32769 characters, the Lease of " +
				"another pool", Expected: "403, 415 or 422", Control: "a report", prepare: reportsExist, asks: receiptAsks(),
			controls: []ask{control},
		},
		{
			Number: "65d", Position: Leader, Goal: "vouch for a node that is dead",
			Sent: "reports with the last link of the node: again, as one of the period that is open and of one before, as " +
				"another node's", Expected: "the Lease of the node does not grow",
			Control: "the same link grew the Lease before", prepare: reportsExist, play: replayedLinks,
		},
		{
			Number: "65e", Position: Leader, Goal: "stop weir-manager by reports that are none",
			Sent:     "holderIdentity of 32 kB: garbage, 4000 entries that are wrong, other alphabets",
			Expected: "no Lease grows", Control: "the report after them renews a node", prepare: reportsExist,
			play: garbageReports,
		},
	}
}

// reportsExist waits until the leader of the pool may report, and gives weir-manager the key by which it answers.
func reportsExist(ctx context.Context, x *scene) error {
	foreigner, err := x.vault.Cloud().ForwarderCertificate(foreign, foreign+"-1")
	if err != nil {
		return err
	}
	key, err := pki.NewPoolAuthority(x.place.name, time.Now())
	if err != nil {
		return err
	}
	files, err := (&pki.Succession{Signer: key}).Files()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: contract.AuthorityPrefix + x.place.name}, Data: files}
	_, err = x.admin.CoreV1().Secrets(contract.KeyNamespace).Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	if err := errors.Join(err, x.certify("foreign forwarder", foreigner), nodeLeasesExist(ctx, x)); err != nil {
		return err
	}
	return until(ctx, "the leader's grant to report", func() bool {
		return x.report(ctx, heartbeat.Report{}.String()).code == http.StatusOK
	})
}

// report reports, as the leader of the pool.
func (x *scene) report(ctx context.Context, text string) answer {
	return x.send(ctx, ask{
		as: "forwarder", at: cloudDoor, method: http.MethodPatch, path: heardLease, header: []string{mergePatch},
		body: reports(text),
	})
}

// receipt is what weir-manager has answered last, false if nothing. Whether it is signed does not matter here.
func (x *scene) receipt(ctx context.Context) (c heartbeat.Receipt, yes bool) {
	l, err := x.admin.CoordinationV1().Leases(contract.KeyNamespace).Get(ctx, contract.HeardPrefix+x.place.name,
		metav1.GetOptions{})
	if err != nil {
		return c, false
	}
	c, err = heartbeat.OpenReceipt(l.Annotations[contract.ReceiptAnnotation], x.place.name,
		func(*x509.Certificate, string, []byte, []byte) bool { return true }, []*x509.Certificate{nil})
	return c, err == nil
}

// taken is after which weir-manager has looked at a report that came after others.
const taken = 3 * time.Second

// answered reports, and then that nobody was heard, until weir-manager has opened another period. It returns what it
// answered.
func (x *scene) answered(ctx context.Context, text string) (c heartbeat.Receipt, err error) {
	before, _ := x.receipt(ctx)
	x.report(ctx, text)
	process.Pause(ctx, clock.RealClock{}, taken)
	err = until(ctx, "the answer to a report", func() bool {
		x.report(ctx, heartbeat.Report{Period: uint64(time.Now().UnixMicro())}.String())
		var yes bool
		c, yes = x.receipt(ctx)
		return yes && c.Period > before.Period
	})
	return c, err
}

func foreignReports(ctx context.Context, x *scene) error {
	for _, as := range []string{"foreign forwarder", "kubelet", "kubelet 2", "hub"} {
		for _, q := range []ask{
			{method: http.MethodPatch, header: []string{mergePatch}, body: reports(heartbeat.Report{}.String())},
			{method: http.MethodPatch, header: []string{applyPatch}, body: reports(heartbeat.Report{}.String())},
			{method: http.MethodDelete},
		} {
			q.as, q.at, q.path, q.codes = as, cloudDoor, heardLease, []int{403, 405}
			x.try(ctx, q)
		}
	}
	return nil
}

// receiptAsks are writes of the Lease of reports that no leader may do.
func receiptAsks() (asks []ask) {
	for _, body := range []string{
		`{"metadata":{"annotations":{"` + contract.ReceiptAnnotation + `":"x"}}}`,
		`{"metadata":{"annotations":null}}`, `{"metadata":{"labels":{"a":"b"}}}`,
		`{"metadata":{"finalizers":["a.example.com/b"]}}`, `{"spec":{"leaseDurationSeconds":40}}`,
		`{"spec":{"renewTime":"{now}"}}`, reports(strings.Repeat("A", heartbeat.MaxRollText+1)),
	} {
		asks = append(asks, ask{method: http.MethodPatch, path: heardLease, header: []string{mergePatch}, body: body})
	}
	asks = append(asks, ask{
		method: http.MethodPatch, path: strings.Replace(heardLease, "{pool}", foreign, 1), header: []string{mergePatch},
		body: reports(heartbeat.Report{}.String()),
	}, ask{method: http.MethodDelete, path: heardLease})
	for i := range asks {
		asks[i].as, asks[i].codes = "forwarder", []int{403, 415, 422}
	}
	return asks
}

// chains opens a chain as the hub of a node does, and tells its anchor.
func (x *scene) chains(ctx context.Context, node string) (chain heartbeat.Chain, period uint64, err error) {
	c, err := x.answered(ctx, heartbeat.Report{}.String())
	if err != nil {
		return chain, 0, err
	}
	chain = heartbeat.NewChain(node, [16]byte{65}, c.Period-1)
	anchor, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{contract.AnchorAnnotation: chain.Anchor().String()},
	}})
	if err == nil {
		_, err = x.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Patch(ctx, node, types.MergePatchType, anchor,
			metav1.PatchOptions{})
	}
	return chain, c.Period, err
}

func (x *scene) renewTime(ctx context.Context, node string) (time.Time, error) {
	l, err := x.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, err
	}
	return lease.RenewTime(l), nil
}

// reported reports entries, and returns whether the Lease of a node grew by that.
func (x *scene) reported(ctx context.Context, node string, period uint64, entries ...heartbeat.Entry) (grew bool,
	err error) {
	before, err := x.renewTime(ctx, node)
	if err != nil {
		return false, err
	}
	r, _ := heartbeat.NewReport(period, entries)
	if _, err = x.answered(ctx, r.String()); err != nil {
		return false, err
	}
	after, err := x.renewTime(ctx, node)
	return after.After(before), err
}

func replayedLinks(ctx context.Context, x *scene) error {
	dead := x.node(2)
	chain, period, err := x.chains(ctx, dead)
	if err != nil {
		return err
	}
	link, _ := chain.Link(period)
	last := heartbeat.Entry{Node: dead, Period: period, Link: link, Reaches: true}
	grew, err := x.reported(ctx, dead, period, last)
	if err != nil {
		return err
	}
	x.control(grew, "the link of period %d, while its hub lives: the Lease grows: %v", period, grew)
	for what, entry := range map[string]func(open uint64) heartbeat.Entry{
		"again":         func(uint64) heartbeat.Entry { return last },
		"as of now":     func(open uint64) heartbeat.Entry { e := last; e.Period = open; return e },
		"as one before": func(uint64) heartbeat.Entry { e := last; e.Period--; return e },
		"of another node": func(open uint64) heartbeat.Entry {
			e := last
			e.Period = open
			e.Link, _ = heartbeat.NewChain(x.node(1), [16]byte{65}, period-1).Link(open)
			return e
		},
	} {
		c, _ := x.receipt(ctx)
		grew, err := x.reported(ctx, dead, c.Period, entry(c.Period))
		if err != nil {
			return err
		}
		x.judge(!grew, "%s: the Lease grows: %v", what, grew)
	}
	return nil
}

func garbageReports(ctx context.Context, x *scene) error {
	node := x.node(2)
	chain, period, err := x.chains(ctx, node)
	if err != nil {
		return err
	}
	before, err := x.renewTime(ctx, node)
	if err != nil {
		return err
	}
	wrong := fmt.Sprint(period, strings.Repeat(" "+node, heartbeat.MaxRollText/len(node)))
	for _, text := range []string{
		strings.Repeat("A", heartbeat.MaxRollText), wrong[:heartbeat.MaxRollText],
		strings.Repeat("ä", heartbeat.MaxRollText/2),
		fmt.Sprint(period) + strings.Repeat(" ", heartbeat.MaxRollText-20),
	} {
		a := x.report(ctx, text)
		process.Pause(ctx, clock.RealClock{}, taken)
		after, err := x.renewTime(ctx, node)
		if err != nil {
			return err
		}
		x.judge(after.Equal(before), "%.20q and so on, %d bytes: %s", text, len(text), a)
	}
	c, err := x.answered(ctx, heartbeat.Report{}.String())
	if err != nil {
		return err
	}
	link, _ := chain.Link(c.Period)
	grew, err := x.reported(ctx, node, c.Period, heartbeat.Entry{Node: node, Period: c.Period, Link: link, Reaches: true})
	x.control(grew, "a report after them: the Lease grows: %v", grew)
	return err
}
