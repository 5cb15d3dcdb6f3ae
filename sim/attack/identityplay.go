package attack

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/testca"
)

func falseCertificates(_ context.Context, x *scene) error {
	node, ca := contract.NodeUserPrefix+x.node(1), x.vault.Cloud().CA()
	self, err := testca.NewAuthority("weir-testbed-cloud")
	if err != nil {
		return err
	}
	pool, err := x.vault.Authority(x.place.name)
	if err != nil {
		return err
	}
	group := []string{contract.NodesGroup}
	for name, c := range map[string]struct {
		by *testca.Authority
		testca.Request
	}{
		"no group":    {ca, testca.Request{CommonName: node, Organizations: []string{contract.HubGroup}, Client: true}},
		"for servers": {ca, testca.Request{CommonName: node, Organizations: group, Hosts: []string{"hub"}}},
		"self-signed": {self, testca.Request{CommonName: node, Organizations: group, Client: true}},
		"of the pool": {pool, testca.Request{CommonName: node, Organizations: group, Client: true}},
		"expired":     {ca, testca.Request{CommonName: node, Organizations: group, Client: true, Lifetime: -time.Hour}},
		"capitals":    {ca, testca.Request{CommonName: strings.ToUpper(node), Organizations: group, Client: true}},
	} {
		pair, err := c.by.Issue(c.Request)
		if err != nil {
			return err
		}
		if err := x.certify(name, pair); err != nil {
			return err
		}
	}
	return nil
}

func hiddenToken(ctx context.Context, x *scene) error {
	reader, err := x.who("reader")
	if err != nil {
		return err
	}
	protocol := "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString(
		[]byte(reader.token),
	)
	for _, q := range []ask{
		{path: slices1 + "?watch=1", header: []string{protocol}, codes: nobody},
		{path: slices1 + "?watch=1", header: []string{protocol}, codes: nobody, h1: true},
		{path: slices1, header: []string{protocol + ", v4.channel.k8s.io"}, codes: nobody, at: plainDoor, h1: true},
		{path: slices1 + "?watch=1", codes: nobody},
		{path: slices1, codes: nobody},
	} {
		x.try(ctx, q)
	}
	return nil
}

// expiredHere makes a token that the hub saw the cloud take, and that has expired since: one that would count if the
// cloud were away.
func expiredHere(ctx context.Context, x *scene) error {
	reader, err := x.who("reader")
	if err != nil {
		return err
	}
	// kube-apiserver takes a token for a minute after its end.
	token, err := x.vault.Cloud().Retime(reader.token, time.Now().Add(-40*time.Second))
	if err != nil {
		return err
	}
	x.let("expired", actor{token: token})
	for _, path := range []string{slicesOfA + "?watch=1", slicesOfA} {
		if a := x.send(ctx, ask{as: "expired", path: path}); a.code != http.StatusOK {
			return fmt.Errorf("while it counts: %s", a)
		}
	}
	return until(ctx, "the token to end", func() bool {
		return x.send(ctx, ask{as: "expired", at: cloudDoor, path: slicesOfA}).code == http.StatusUnauthorized
	})
}

// ofPod makes a pod of this node, which the kubelet reads, and a token that is bound to it.
func (x *scene) ofPod(ctx context.Context, pod string, audiences ...string) (token string, err error) {
	p, err := x.pod(ctx, x.place.name+"-"+pod, x.node(1))
	if err != nil {
		return "", err
	}
	if err := x.kubeletLists(ctx); err != nil {
		return "", err
	}
	return x.token(ctx, "a/reader", p, audiences...)
}

// kubeletLists has the kubelet list the pods of its node, as it does when it starts.
func (x *scene) kubeletLists(ctx context.Context) error {
	a := x.send(
		ctx,
		ask{
			as: "kubelet", path: "/api/v1/pods?fieldSelector=spec.nodeName%3D{node}&resourceVersion=0",
			header: []string{"User-Agent: kubelet/v1.37.1"},
		},
	)
	if a.code != http.StatusOK {
		return fmt.Errorf("the kubelet lists its pods: %s", a)
	}
	return nil
}

// jailed takes a right away, and then the cloud's answers.
func jailed(ctx context.Context, x *scene) error {
	const user = "system:serviceaccount:c:jailed"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "jailed"}}
	if _, err := x.admin.CoreV1().ServiceAccounts("c").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	token, err := x.token(ctx, "c/jailed", nil)
	if err != nil {
		return err
	}
	x.let("jailed", actor{token: token})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "attack:jailed"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "attack:slices"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "jailed", Namespace: "c"}},
	}
	rbac, flow := x.admin.RbacV1().ClusterRoleBindings(), x.admin.FlowcontrolV1()
	if _, err := rbac.Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	watch := ask{as: "jailed", path: slices1 + "?watch=1&timeoutSeconds=1", codes: ok}
	if err := until(ctx, "the grant to count", func() bool {
		return x.send(ctx, ask{as: "jailed", at: cloudDoor, path: watch.path}).code == http.StatusOK
	}); err != nil {
		return err
	}
	if a := x.send(ctx, watch); !a.right(watch) {
		x.note("with the right, at the hub: %s", a)
	}
	if err := rbac.Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = flow.PriorityLevelConfigurations().Create(ctx, &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "attack-jail"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32), LendablePercent: new(int32), BorrowingLimitPercent: new(int32),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	schema, err := flow.FlowSchemas().Create(ctx, &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "attack-jail"},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "attack-jail"},
			MatchingPrecedence:         2,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{
					{
						Kind:           flowcontrolv1.SubjectKindServiceAccount,
						ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: "c", Name: "jailed"},
					},
				},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"},
					ClusterScope: true,
				}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = flow.FlowSchemas().Delete(context.WithoutCancel(ctx), schema.Name, metav1.DeleteOptions{}) }()
	jail := ask{as: "jailed", at: cloudDoor, path: slices1 + "?watch=1&timeoutSeconds=1"}
	hammering, stop := context.WithCancel(ctx)
	var hammers sync.WaitGroup
	defer hammers.Wait()
	defer stop()
	var refusals atomic.Int32
	for range 24 { // there is one seat for all of them
		hammers.Go(func() {
			for hammering.Err() == nil {
				if x.send(hammering, jail).code == http.StatusTooManyRequests {
					refusals.Add(1)
				}
			}
		})
	}
	if err := until(ctx, "the cloud to answer "+user+" by 429", func() bool { return refusals.Load() > 50 }); err != nil {
		return err
	}
	for i := range 20 {
		watch := fmt.Sprintf("%s?watch=1&labelSelector=x%d!=1", slices1, i)
		x.judge(x.send(ctx, ask{as: "jailed", path: watch}).code != http.StatusOK, "a watch with a selector of its own")
	}
	x.judge(x.send(ctx, ask{as: "jailed", path: slices1 + "?labelSelector=x!%3D3"}).code != http.StatusOK, "a list")
	x.note("%d requests of it were answered by 429 meanwhile", refusals.Load())
	return nil
}

type spelling struct{ path, wire string }

func spelledVerbs() []spelling {
	var all []spelling
	const p = "/api/v1/namespaces/a/endpoints"
	for _, q := range []string{
		"watch=0&watch=1", "watch=1&watch=0", "watch=", "watch", "watch=FALSE", "watch=False&watch=true", "watch=true;x",
		"watch=t", "watch=T", "Watch=1", "watch=2", "watch=yes", "%77atch=1",
		"watch=0%31", "watch=%31", "sendInitialEvents=true&watch=1&resourceVersionMatch=NotOlderThan",
		"allowWatchBookmarks=1", "watch=1&timeoutSeconds=1&watch=false", ";watch=1", "&watch=1",
	} {
		all = append(all, spelling{path: p + "?" + q})
	}
	return append(
		all, spelling{path: "/api/v1/watch/namespaces/a/endpoints"}, spelling{path: p + "/shop?watch=1"},
		spelling{path: "/api/v1/watch/namespaces/a/endpoints/shop"},
	)
}

func spelledPaths() []spelling {
	var all []spelling
	for _, p := range []string{
		"//api/v1/endpoints", "/api//v1/endpoints", "/api/v1//endpoints", "/api/v1/namespaces/a/../b/endpoints",
		"/api/v1/namespaces/a/%2e%2e/b/endpoints",
		"/api/v1/namespaces/a%2f..%2fb/endpoints", "/api/v1/namespaces/a%2Fendpoints/../../b/endpoints", "/api/v1/endpoints/",
		"/API/v1/endpoints", "/api/V1/endpoints", "/api/v1/Endpoints",
		"/api/v1/./endpoints", "/api/v1/namespaces//endpoints", "/api/v1/namespaces/b/endpoints/",
		"/api/v1/namespaces/b//endpoints", "/api/v1/namespaces/b/endpoints/hidden/",
		"/api/v1/namespaces/b/endpoints%2fhidden", "/api/v1/namespaces/b/endpoints/hidden%00",
		"/api/v1/namespaces/%62/endpoints", "/apis/v1/endpoints", "/api/v1/namespaces/a/endpoints/../../b/endpoints/hidden",
		"/api/v1/namespaces/a/endpoints/shop%2f..%2f..%2f..%2fb%2fendpoints%2fhidden", "/api/v1/namespaces/b/endpoints;a=b",
		"/api/v1/namespaces/a;/../b/endpoints",
	} {
		all = append(all, spelling{path: p})
	}
	for _, line := range []string{
		"a:b:/api/v1/endpoints", "https:/api/v1/endpoints", "https://other/api/v1/endpoints", "http:api/v1/endpoints", "*",
		"/api/v1/namespaces/a/endpoints#/../b", "/api/v1/namespaces/b/endpoints?#",
		"//other/api/v1/endpoints", "/\\api/v1/endpoints", "a:/api/v1/namespaces/b/endpoints",
	} {
		all = append(all, spelling{path: line, wire: line})
	}
	return all
}

// spellings sends each spelling to the hub and to the cloud itself: the hub may grant nothing that the cloud does not.
func spellings(all []spelling, as ...string) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error {
		var differ atomic.Int32
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(8)
		for _, who := range as {
			token, err := x.who(who)
			if err != nil {
				return err
			}
			for _, s := range all {
				for _, h1 := range []bool{false, true} {
					q := ask{as: who, path: s.path, h1: h1}
					if s.wire != "" {
						if !h1 {
							continue
						}
						q = ask{
							as: who,
							wire: "GET " + s.wire + " HTTP/1.1\r\nHost: hub\r\nConnection: close\r\nAuthorization: Bearer " + token.token +
								"\r\n\r\n",
						}
					}
					g.Go(func() error {
						at := q
						at.at = cloudDoor
						want, got := x.send(ctx, at), x.send(ctx, q)
						granted := got.code == http.StatusOK && want.code != http.StatusOK
						shown := strings.Contains(got.body, hidden) && !strings.Contains(want.body, hidden)
						if want.code != got.code {
							differ.Add(1)
						}
						x.judge(!granted && !shown, "%s as %s: %s, the cloud says %s", q, who, got, want)
						return nil
					})
				}
			}
		}
		err := g.Wait()
		x.note("%d answers have another code than the cloud's", differ.Load())
		return err
	}
}

func upgrade(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" +
		"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
}

// smuggle hides a request of another identity behind the end of a body.
func smuggle(ctx context.Context, x *scene) error {
	reader, err := x.who("reader")
	if err != nil {
		return err
	}
	inner := "GET /api/v1/namespaces/b/secrets HTTP/1.1\r\nHost: hub\r\nX-Smuggled: 1\r\n\r\n"
	post := "POST /api/v1/namespaces/a/configmaps HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n"
	for _, bytes := range []string{
		post + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(inner), inner),
		post + fmt.Sprintf(
			"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner,
		),
		post + "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + inner,
		post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + inner,
		post + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + inner,
		post + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner),
		post + "Content-Length: +0\r\n\r\n" + inner,
		post + "Content-Length : 0\r\n\r\n" + inner,
		post + "Content-Length: 0\nX: y\r\n\r\n" + inner,
	} {
		for _, d := range []door{hubDoor, plainDoor} {
			answers := x.onWire(ctx, d, actor{}, bytes, 2)
			// A second answer is one of this connection alone: nobody's, so it is refused as nobody's.
			refused := slices.Contains(append([]int{
				http.StatusNotFound, http.StatusNotAcceptable, http.StatusUnsupportedMediaType,
			}, malformed...), answers[0].code) &&
				slices.Contains(malformed, answers[1].code) && !strings.Contains(answers[1].body, canary)
			_, head, _ := strings.Cut(bytes, "application/json\r\n")
			head, _, _ = strings.Cut(head, "\r\n\r\n")
			x.judge(refused, "%q at %s: %s, %s", head, d, answers[0], answers[1])
		}
	}
	for range 10 {
		a := x.send(ctx, ask{as: "reader", path: plainMap})
		x.control(a.code == http.StatusOK && strings.Contains(a.body, "hello"), "the reader: %s", a)
	}
	two := "GET " + plainMap + " HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer " + reader.token + "\r\n\r\n"
	answers := x.onWire(ctx, hubDoor, actor{}, two+two, 2)
	x.control(
		answers[0].code == http.StatusOK && answers[1].code == http.StatusOK,
		"two requests of the reader in one write: %s, %s", answers[0], answers[1],
	)
	return nil
}

// falseSource names another machine as the one that calls.
func falseSource(ctx context.Context, x *scene) error {
	reader, err := x.who("reader")
	if err != nil {
		return err
	}
	for i, headers := range [][]string{
		{"X-Real-Ip: 6.6.6.6"}, {"x-real-ip: 6.6.6.6", "X-Forwarded-For: 6.6.6.6"}, {"X-Forwarded-For: 6.6.6.6, 7.7.7.7"},
		{"Forwarded: for=6.6.6.6"}, {
			"True-Client-Ip: 6.6.6.6", "X-Client-Ip: 6.6.6.6",
		},
		{"X-Real-IP: 6.6.6.6", "Connection: X-Forwarded-For"},
	} {
		uri := fmt.Sprintf("%s?attack=27-%d-%d", plainMap, i, time.Now().UnixNano())
		bytes := "GET " + uri + " HTTP/1.1\r\nHost: hub\r\nConnection: close\r\nAuthorization: Bearer " + reader.token +
			"\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
		a := x.onWire(ctx, hubDoor, actor{}, bytes, 1)[0]
		if a.code == http.StatusBadRequest {
			x.judge(true, "%s: 400", strings.Join(headers, ", "))
			continue
		}
		var events []auditEvent
		err := until(ctx, "the audit log to have "+uri, func() bool {
			events, _ = x.audit.of(uri)
			return len(events) > 0
		})
		if err != nil {
			return errors.Join(err, fmt.Errorf("the hub answered %s", a))
		}
		x.judge(
			!slices.Contains(events[0].SourceIPs, "6.6.6.6"), "%s: %d, noted as from %s", strings.Join(headers, ", "),
			a.code, strings.Join(events[0].SourceIPs, ", "),
		)
		x.control(
			events[0].User.Username == "system:serviceaccount:a:reader", "noted as by %s", events[0].User.Username,
		)
	}
	return nil
}
