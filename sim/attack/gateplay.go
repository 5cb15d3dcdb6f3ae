package attack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/sim/testca"
)

// Nodes of the pool gated beside those of its hubs, and one of the cloud.
const (
	farNode      = "gated-far"      // at an address that may be dialed
	metadataNode = "gated-metadata" // says that it has the address of a cloud's metadata
	loopbackNode = "gated-loopback" // and this one, that of the machine itself
	cloudNode    = "gated-cloud"    // of no pool
	cloudAddress = "10.77.0.1"
	metadata     = "169.254.169.254"
)

// gateFolk are those who call the gate, and the nodes that they ask for. The leader of the pool has its connection.
func gateFolk(ctx context.Context, x *scene) error {
	for name, r := range map[string]testca.Request{
		"prometheus": {CommonName: "attack:prometheus"}, "egress": {CommonName: "attack:egress"},
		"caller":        {CommonName: "attack:caller"},
		"administrator": {CommonName: "attack:administrator", Organizations: []string{"system:masters"}},
	} {
		r.Client = true
		pair, err := x.vault.Cloud().CA().Issue(r)
		if err == nil {
			err = x.certify(name, pair)
		}
		if err != nil {
			return err
		}
	}
	hub, err := x.vault.Cloud().HubCertificate(foreign, foreign+"-1", 0)
	if err != nil {
		return err
	}
	kubelet, err := x.vault.Cloud().KubeletCertificate(foreign+"-1", 0)
	if err := errors.Join(err, x.certify("foreign hub", hub), x.certify("foreign kubelet", kubelet)); err != nil {
		return err
	}
	for _, n := range []struct{ name, pool, address string }{
		{farNode, x.place.name, farAddress()}, {metadataNode, x.place.name, metadata},
		{loopbackNode, x.place.name, "127.0.0.1"}, {cloudNode, "", cloudAddress},
	} {
		if err := x.addNode(ctx, n.name, n.pool, n.address); err != nil {
			return err
		}
	}
	return until(ctx, "the gate to reach the pool by its leader", func() bool {
		return x.connect(ctx, "prometheus", farNode+":10250").dialed()
	})
}

// farAddress is one of this machine that may be dialed, or one that leads nowhere.
func farAddress() string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "192.0.2.10"
	}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && reverse.Forbidden(p.Addr()) == nil {
			return p.Addr().String()
		}
	}
	return "192.0.2.10"
}

// addNode makes a Node that says that it has an address.
func (x *scene) addNode(ctx context.Context, name, pool, address string) error {
	labels := map[string]string{}
	if pool != "" {
		labels[contract.NodePoolLabel] = pool
	}
	all := x.admin.CoreV1().Nodes()
	n, err := all.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name},
	}
	_, err = all.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// connect asks the gate for a connection. Of one that comes about nothing more is read.
func (x *scene) connect(ctx context.Context, as, to string, header ...string) answer {
	var more strings.Builder
	for _, h := range header {
		more.WriteString(h + "\r\n")
	}
	return x.say(ctx, as, fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", to, to, &more))
}

// say writes a request to the gate, and reads the head of the answer, and of a refusal its text.
func (x *scene) say(ctx context.Context, as, request string) answer {
	who, err := x.who(as)
	if err != nil {
		return answer{err: err}
	}
	c, err := x.dial(ctx, gateDoor, who, "http/1.1")
	if err != nil {
		return answer{err: err}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerPatience))
	if who.token != "" {
		request = strings.Replace(request, "\r\n\r\n", "\r\nAuthorization: Bearer "+who.token+"\r\n\r\n", 1)
	}
	if _, err := io.WriteString(c, request); err != nil {
		return answer{err: err}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	a := answer{code: resp.StatusCode, header: resp.Header}
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(request, http.MethodConnect) {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
		a.body = string(body)
	}
	return a
}

// dialed reports whether an answer to CONNECT says that an address was dialed, with success or without.
func (a answer) dialed() bool {
	return slices.Contains([]int{http.StatusOK, http.StatusBadGateway, http.StatusGatewayTimeout}, a.code)
}

// dials counts what the leader of the pool has dialed for the gate.
func (x *scene) dials(ctx context.Context) (n uint64) {
	var s struct {
		WayIn []reverse.LeaderState `json:"wayIn"`
	}
	within(ctx, patience, func() bool { return x.hub(1).Status(ctx, &s) == nil })
	for _, w := range s.WayIn {
		n += w.Opened + w.Failed
	}
	return n
}

// byLeader is the control of each CONNECT that is refused: who may is taken to the node by the leader of its pool.
func (x *scene) byLeader(ctx context.Context) {
	var a answer
	well := within(ctx, answerPatience, func() bool { // a hub on a busy machine may lose its connection, and come back
		before := x.dials(ctx)
		a = x.connect(ctx, "prometheus", farNode+":10250")
		return a.dialed() && x.dials(ctx) > before
	})
	x.control(well, "CONNECT %s: %s, dialed by its leader: %t", farNode, a, well)
}

// refusedConnects tries a connection to each address, and judges that none is dialed.
func (x *scene) refusedConnects(ctx context.Context, as string, to []string, header ...string) {
	before := x.dials(ctx)
	for _, address := range to {
		var a answer
		within(ctx, answerPatience, func() bool { // 503: the leader has no connection just now
			a = x.connect(ctx, as, address, header...)
			return a.code != 0 && a.code != http.StatusServiceUnavailable
		})
		refused := slices.Contains(nobody, a.code)
		x.judge(refused, "CONNECT %s as %q: %s%s", address, as, a, trim(a.body, !refused))
	}
	more := x.dials(ctx)
	x.judge(more <= before, "as %q: the leader has dialed: %t", as, more > before)
}

func trim(text string, show bool) string {
	if !show {
		return ""
	}
	return fmt.Sprintf(" %.120s", strings.TrimSpace(text))
}

// bait is a server that nobody is to reach through the gate.
type bait struct {
	net.Listener
	port  string
	calls atomic.Int32
}

func newBait(ctx context.Context) (*bait, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	b := &bait{Listener: l, port: port}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.calls.Add(1)
			_ = c.Close()
		}
	}()
	return b, err
}

// everywhere are addresses that a gate or a leader must dial for nobody.
func (x *scene) everywhere(b *bait) ([]string, error) {
	gate, _, err := x.vault.Gate()
	if err != nil {
		return nil, err
	}
	all := []string{
		metadata + ":80", "[fd00:ec2::254]:80", "100.100.100.200:80", "[::ffff:169.254.169.254]:80",
		gate, x.vault.Cloud().Addr(), metadataNode + ":10250", metadataNode + ":80", loopbackNode + ":10250",
		loopbackNode + ":" + b.port, farNode + ":22", farNode + ":" + b.port, farAddress() + ":" + b.port, farNode + ":0",
		farNode, ":10250", x.node(1) + ":10250",
	}
	for _, host := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "localhost",
	} {
		all = append(all, host+":"+b.port)
	}
	return all, nil
}

// connectsFromEdge tries with what is on nodes.
func connectsFromEdge(ctx context.Context, x *scene) error {
	b, err := newBait(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	gate, _, err := x.vault.Gate()
	if err != nil {
		return err
	}
	to := []string{
		farNode + ":10250", x.node(2) + ":10250", foreign + "-1:10250", metadata + ":80", gate, x.vault.Cloud().Addr(),
		"127.0.0.1:" + b.port, farAddress() + ":" + b.port, "10.0.0.1:443",
	}
	for _, as := range []string{"hub", "hub 2", "kubelet", "foreign hub", "foreign kubelet", "reader", "member", ""} {
		x.refusedConnects(ctx, as, to)
	}
	for _, header := range []string{
		"Impersonate-User: attack:prometheus", "X-Remote-User: attack:prometheus", "Weir-Node: " + farNode,
		"Proxy-Authorization: Bearer attack:prometheus",
	} {
		x.refusedConnects(ctx, "hub", to[:2], header)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, "CONNECT"} {
		for _, path := range []string{contract.ConnectPath, contract.StraightPath} {
			a := x.say(ctx, "hub", fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s:10250\r\n\r\n", method, path, farNode))
			x.judge(slices.Contains(barred, a.code), "%s %s as hub: %s", method, path, a)
		}
	}
	x.judge(b.calls.Load() == 0, "%d calls of a server beside the gate", b.calls.Load())
	x.byLeader(ctx)
	return nil
}

// connectsAs tries as somebody who may connect to something.
func connectsAs(as string) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error {
		b, err := newBait(ctx)
		if err != nil {
			return err
		}
		defer b.Close()
		to, err := x.everywhere(b)
		if err != nil {
			return err
		}
		if as == "prometheus" {
			to = append(to, "10.0.0.1:443", cloudAddress+":443", "192.0.2.1:443", "kubernetes.default.svc:443", "2130706433:80")
		}
		x.refusedConnects(ctx, as, to)
		for _, url := range []string{"http://" + metadata + "/", "http://127.0.0.1:" + b.port + "/"} {
			a := x.say(ctx, as, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: gate\r\n\r\n", url))
			x.judge(a.code == http.StatusBadRequest || a.code == http.StatusForbidden, "GET %s as %s: %s", url, as, a)
		}
		x.judge(b.calls.Load() == 0, "%d calls of a server of the gate's machine", b.calls.Load())
		x.byLeader(ctx)
		return nil
	}
}

// leadsAnother tries to have the gate take a connection for that of another pool.
func leadsAnother(ctx context.Context, x *scene) error {
	for _, as := range []string{
		"kubelet", "foreign kubelet", "caller", "administrator", "reader", "member", "viewer", "",
	} {
		c, err := x.claim(ctx, as, contract.ReversePath)
		if err != nil {
			return err
		}
		c.close()
		x.judge(slices.Contains(nobody, c.code), "POST as %q: %d", as, c.code)
	}
	pool := x.place.name
	var all []*claimant
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	took := 0
	for _, as := range []struct {
		path   string
		header []string
	}{
		{path: contract.ReversePath + "?pool=" + pool + "&node=" + x.node(1)}, {path: contract.ReversePath + "/" + pool},
		{path: contract.ReversePath, header: []string{"Weir-Pool: " + pool, "Weir-Node: " + farNode}},
		{path: contract.ReversePath, header: []string{"X-Remote-User: " + contract.HubUserPrefix + pool + ":" + x.node(1)}},
		{path: contract.ReversePath, header: []string{
			"Impersonate-User: " + contract.HubUserPrefix + pool + ":" + x.node(1),
		}},
		{path: contract.ReversePath},
	} {
		c, err := x.claim(ctx, "foreign hub", as.path, as.header...)
		if err != nil {
			return err
		}
		if all = append(all, c); c.code == http.StatusSwitchingProtocols {
			took++
		}
	}
	x.note("%d connections of the hub are taken", took)
	own := foreign + "-1:10250"
	if err := until(ctx, "the hub to be asked", func() bool {
		return x.connect(ctx, "prometheus", own).code == http.StatusOK
	}); err != nil {
		return err
	}
	for range 4 {
		for _, to := range []string{farNode, farAddress(), x.node(1)} {
			x.note("CONNECT %s: %s", to, x.connect(ctx, "prometheus", to+":10250"))
		}
	}
	x.byLeader(ctx)
	x.notDrawn(all, func(c call) bool { return c.node == foreign+"-1" })
	return nil
}

// notDrawn judges by what hubs were asked for over their connections: nothing but what is their own.
func (x *scene) notDrawn(all []*claimant, own func(call) bool) {
	mine, others := 0, []call{}
	for _, c := range all {
		for _, a := range c.asked() {
			if own(a) {
				mine++
			} else {
				others = append(others, a)
			}
		}
	}
	x.judge(len(others) == 0, "the hub was asked %d times for what is of others: %v", len(others),
		others[:min(len(others), 3)])
	x.control(mine > 0, "the hub was asked for what is its own: %t", mine > 0)
}

// drawsConnections has a Node say that it has what others have.
func drawsConnections(ctx context.Context, x *scene) error {
	const own = "10.66.6.6"
	service, err := x.admin.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return err
	}
	c, err := x.claim(ctx, "foreign hub", contract.ReversePath)
	if err != nil {
		return err
	}
	defer c.close()
	server, _, err := net.SplitHostPort(x.vault.Cloud().Addr())
	if err != nil {
		return err
	}
	addresses := []string{`{"type":"InternalIP","address":"` + own + `"}`}
	for _, a := range []string{farAddress(), cloudAddress, service.Spec.ClusterIP, server, "127.0.0.1", metadata} {
		addresses = append(addresses, `{"type":"InternalIP","address":"`+a+`"}`)
	}
	for _, a := range []string{farNode, cloudNode, x.node(1), farAddress(), cloudAddress} {
		addresses = append(addresses, `{"type":"Hostname","address":"`+a+`"}`)
	}
	patch := ask{
		as: "foreign kubelet", at: cloudDoor, method: http.MethodPatch, path: "/api/v1/nodes/" + foreign + "-1/status",
		header: []string{"Content-Type: application/merge-patch+json"},
		body:   `{"status":{"addresses":[` + strings.Join(addresses, ",") + `]}}`, codes: ok,
	}
	if a := x.send(ctx, patch); !a.right(patch) {
		return fmt.Errorf("a kubelet writes the addresses of its Node: %s %.300s", a, a.body)
	}
	if err := until(ctx, "the hub to be asked for what its Node says", func() bool {
		return x.connect(ctx, "prometheus", own+":10250").code == http.StatusOK
	}); err != nil {
		return err
	}
	for _, as := range []string{"prometheus", "egress"} {
		for _, to := range []string{
			farNode, farAddress(), cloudNode, cloudAddress, service.Spec.ClusterIP, x.node(1), server, "127.0.0.1", metadata,
		} {
			if as == "egress" && slices.Contains([]string{cloudNode, cloudAddress, service.Spec.ClusterIP}, to) {
				continue // these are dialed, which takes long where they lead nowhere
			}
			x.note("CONNECT %s as %s: %s", to, as, x.connect(ctx, as, net.JoinHostPort(to, strconv.Itoa(reverse.KubeletPort))))
		}
	}
	x.byLeader(ctx)
	x.notDrawn([]*claimant{c}, func(c call) bool { return c.address == own+":10250" })
	return nil
}
