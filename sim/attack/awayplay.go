package attack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trickAll sends a request with each trick and a token of its own, at both ports, and keeps the tokens.
func (x *scene) trickAll(ctx context.Context, token func(i int) (string, error)) error {
	var tokens []string
	for i, trick := range tricks() {
		for j, d := range []door{hubDoor, plainDoor} {
			t, err := token(2*i + j)
			if err != nil {
				return err
			}
			tokens = append(tokens, t)
			for _, path := range []string{"/version", "/healthz"} {
				x.send(ctx, ask{at: d, wire: withTrick(path, t, trick)})
			}
		}
	}
	// HTTP/2 forbids the header; a hub may not be brought to read it there either.
	t, err := token(1000)
	if err != nil {
		return err
	}
	x.let("second protocol", actor{token: t})
	x.send(ctx, ask{as: "second protocol", path: "/version", header: []string{"Connection: Authorization"}})
	x.keep("tokens", append(tokens, t))
	return nil
}

// tricked reads something with each of the tokens.
func (x *scene) tricked(ctx context.Context, path string) error {
	for i, t := range x.kept["tokens"].([]string) {
		x.let("tricked", actor{token: t})
		a := x.send(ctx, ask{as: "tricked", path: path, codes: unknown})
		what := "HTTP/2"
		if i/2 < len(tricks()) {
			what = fmt.Sprintf("%q at %s", strings.Join(tricks()[i/2], ", "), []door{hubDoor, plainDoor}[i%2])
		}
		x.judge(a.code == 401 || a.code == 503, "%s: %s", what, a)
	}
	return nil
}

func (x *scene) keep(name string, v any) {
	if x.kept == nil {
		x.kept = map[string]any{}
	}
	x.kept[name] = v
}

// nextMinute waits until decisions are noted with another minute: then the reader's are older than those that follow.
func nextMinute(ctx context.Context) error {
	now := time.Now()
	return until(ctx, "the next minute", func() bool { return time.Now().Unix()/60 != now.Unix()/60 })
}

// repeat sends many requests, some at a time, whatever the answers are.
func (x *scene) repeat(ctx context.Context, n int, q func(i int) ask) error {
	return parallel(ctx, 16, n, func(i int) { x.send(ctx, q(i)) })
}

// revoked reads with a token of an account, deletes that, sees the token refused, and tries to have it unlearned.
func revoked(ctx context.Context, x *scene) error {
	token, err := x.account(ctx, "revoked-"+x.place.name)
	if err != nil {
		return err
	}
	x.let("revoked", actor{token: token})
	for _, q := range []ask{{as: "revoked", path: plainMap, codes: ok}, {as: "revoked", path: slices1, codes: ok}} {
		if err := until(ctx, "the account to be served", func() bool { return x.send(ctx, q).right(q) }); err != nil {
			return err
		}
	}
	if err := x.admin.CoreV1().ServiceAccounts("a").Delete(
		ctx, "revoked-"+x.place.name, metav1.DeleteOptions{},
	); err != nil {
		return err
	}
	if err := until(ctx, "the cloud to refuse the token",
		func() bool { return x.send(ctx, ask{as: "revoked", path: plainMap}).code == 401 }); err != nil {
		return err
	}
	if err := x.trickAll(ctx, func(int) (string, error) { return token, nil }); err != nil {
		return err
	}
	return x.sure(ctx)
}

// sure waits until what the cloud has denied once was asked again by the hub: whoever was denied does not ask any more.
func (x *scene) sure(ctx context.Context) error {
	return until(ctx, "the hub to ask again", func() bool {
		m := x.metrics(ctx, 1)
		return m != nil && m.Sum("weir_hub_authorization_doubts") == 0
	})
}

func longExpired(ctx context.Context, x *scene) error {
	token, err := x.ofPod(ctx, "old")
	if err != nil {
		return err
	}
	long, err := x.vault.Cloud().Retime(token, time.Now().Add(-25*time.Hour))
	x.let("long expired", actor{token: long})
	if err != nil {
		return err
	}
	just, err := x.vault.Cloud().Retime(token, time.Now().Add(-time.Hour))
	x.let("just expired", actor{token: just})
	return err
}

func elsewhere(ctx context.Context, x *scene) error {
	p, err := x.pod(ctx, x.place.name+"-elsewhere", foreign+"-1")
	if err != nil {
		return err
	}
	token, err := x.token(ctx, "a/reader", p)
	if err != nil {
		return err
	}
	x.let("elsewhere", actor{token: token})
	here, err := x.ofPod(ctx, "here")
	x.let("here", actor{token: here})
	return err
}

func replaced(ctx context.Context, x *scene) error {
	old, err := x.ofPod(ctx, "swap")
	if err != nil {
		return err
	}
	x.let("replaced", actor{token: old})
	now := int64(0)
	if err := x.admin.CoreV1().Pods("a").Delete(
		ctx, x.place.name+"-swap", metav1.DeleteOptions{GracePeriodSeconds: &now},
	); err != nil {
		return err
	}
	replacement, err := x.ofPod(ctx, "swap")
	x.let("replacement", actor{token: replacement})
	return err
}

// mounted makes a pod that mounts the Secret, so that the kubelet may read it, and has it read.
func mounted(ctx context.Context, x *scene) error {
	_, err := x.admin.CoreV1().Pods("a").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: x.place.name + "-mounts"},
		Spec: corev1.PodSpec{
			NodeName: x.node(1), ServiceAccountName: "reader", AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}},
			Volumes: []corev1.Volume{
				{
					Name:         "secret",
					VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "canary"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	q := ask{as: "kubelet", path: "/api/v1/namespaces/a/secrets/canary", header: []string{kubeletAgent}, codes: ok}
	return until(ctx, "the kubelet to read the Secret", func() bool { return x.send(ctx, q).right(q) })
}

// grant makes an account of namespace c that may read Secrets of namespace a.
func grant(account string, verbs ...string) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error {
		rbac, name := x.admin.RbacV1(), x.place.name+"-"+account
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := x.admin.CoreV1().ServiceAccounts("c").Create(ctx, sa, metav1.CreateOptions{}); err != nil {
			return err
		}
		meta := metav1.ObjectMeta{Name: name}
		if _, err := rbac.Roles("a").Create(ctx, &rbacv1.Role{
			ObjectMeta: meta,
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := rbac.RoleBindings("a").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: "c"}},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
		token, err := x.token(ctx, "c/"+name, nil)
		x.let(account, actor{token: token})
		if err != nil {
			return err
		}
		return until(ctx, "the grant to count", func() bool {
			return x.send(ctx, ask{as: account, at: cloudDoor, path: "/api/v1/namespaces/a/secrets"}).code == http.StatusOK
		})
	}
}

// fickle may list and watch Secrets, and later not list them any more.
func fickle(ctx context.Context, x *scene) error {
	for _, who := range []string{"fickle", "constant"} {
		if err := grant(who, "list", "watch")(ctx, x); err != nil {
			return err
		}
		for _, q := range []ask{
			{as: who, path: "/api/v1/namespaces/a/secrets?watch=1", codes: ok}, {
				as: who, path: "/api/v1/namespaces/a/secrets", codes: ok,
			},
		} {
			if a := x.send(ctx, q); !a.right(q) {
				return fmt.Errorf("%s as %s: %s", q, who, a)
			}
		}
	}
	if err := x.admin.RbacV1().RoleBindings("a").Delete(
		ctx, x.place.name+"-fickle", metav1.DeleteOptions{},
	); err != nil {
		return err
	}
	q := ask{as: "fickle", path: "/api/v1/namespaces/a/secrets", codes: []int{403}}
	if err := until(ctx, "the list to be forbidden", func() bool { return x.send(ctx, q).right(q) }); err != nil {
		return err
	}
	return x.sure(ctx)
}

// hadToken has the kubelet ask for the token of a pod.
func hadToken(ctx context.Context, x *scene) error {
	name := "token-" + x.attack.Number
	if _, err := x.ofPod(ctx, name); err != nil {
		return err
	}
	p, err := x.admin.CoreV1().Pods("a").Get(ctx, x.place.name+"-"+name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	q := ask{
		as: "kubelet", method: http.MethodPost, path: "/api/v1/namespaces/a/serviceaccounts/reader/token",
		header: []string{kubeletAgent},
		body:   tokenRequest(p.Name, string(p.UID), ""), codes: []int{200, 201}, has: "eyJ",
	}
	x.keep("token request", q)
	x.keep("pod", p)
	for i := range x.attack.asks {
		if x.attack.asks[i].body == "{token request}" {
			x.attack.asks[i].body = q.body
		}
	}
	var last answer
	if err := until(ctx, "the kubelet to get a token", func() bool { last = x.send(ctx, q); return last.right(q) }); err !=
		nil {
		return fmt.Errorf("%w: %s: %.300s", err, last, last.body)
	}
	return nil
}

// tokenRequestHead begins every request for a token.
const tokenRequestHead = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1",`

func tokenRequest(pod, uid, audience string) string {
	const seconds = 3607 // as a kubelet asks
	audiences := "[]"
	if audience != "" {
		audiences = fmt.Sprintf("[%q]", audience)
	}
	return fmt.Sprintf(`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":%s,`+
		`"expirationSeconds":%d,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":%q,"uid":%q}}}`,
		audiences, seconds, pod, uid)
}

func otherTokens(ctx context.Context, x *scene) error {
	p, good := x.kept["pod"].(*corev1.Pod), x.kept["token request"].(ask)
	uid := string(p.UID)
	for _, c := range []struct{ account, body string }{
		{"reader", tokenRequest(p.Name, "00000000-0000-0000-0000-000000000000", "")},
		{"reader", tokenRequest(p.Name, uid, "vault")},
		{"reader", tokenRequest("another", uid, "")},
		{"other", tokenRequest(p.Name, uid, "")},
		{"reader", `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"expirationSeconds":3607}}`},
		{"reader", strings.Replace(tokenRequest(p.Name, uid, ""), `"Pod"`, `"Secret"`, 1)},
	} {
		q := good
		q.path, q.body, q.codes, q.has, q.lacks = "/api/v1/namespaces/a/serviceaccounts/"+c.account+"/token", c.body,
			append([]int{400, 404}, nobody...), "", "eyJ"
		a := x.send(ctx, q)
		x.judge(a.right(q), "%s of %.160s: %s", c.account, strings.TrimPrefix(c.body, tokenRequestHead), a)
	}
	x.check(ctx, good)
	return nil
}

func queueNothing(ctx context.Context, x *scene) error {
	before := x.metrics(ctx, 1).Sum("weir_queue_entries")
	for _, d := range []door{hubDoor, plainDoor} {
		for _, q := range []ask{
			{
				method: http.MethodPost, path: "/api/v1/namespaces/a/events",
				body: `{"kind":"Event","apiVersion":"v1","metadata":{"name":"x","namespace":"a"},` +
					`"involvedObject":{"namespace":"a"}}`,
			},
			{
				method: http.MethodPatch, path: "/api/v1/nodes/{node}/status",
				header: []string{"Content-Type: application/strategic-merge-patch+json"},
				body:   `{"status":{"conditions":[{"type":"FromPod","status":"True"}]}}`,
			},
			{
				method: http.MethodPut, path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}",
				body: `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"{node}",` +
					`"namespace":"kube-node-lease"},"spec":{"holderIdentity":"x"}}`,
			},
			{
				method: http.MethodPut, path: "/api/v1/namespaces/a/configmaps/plain",
				body: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"plain","namespace":"a"}}`,
			},
		} {
			q.at, q.h1, q.codes = d, d == plainDoor, nobody
			for _, as := range []string{"reader", "other", ""} {
				q.as = as
				x.try(ctx, q)
			}
		}
	}
	after := x.metrics(ctx, 1).Sum("weir_queue_entries")
	x.judge(before == after, "%g writes queued", after-before)
	return nil
}

func kubeletPod(ctx context.Context, x *scene) error {
	if _, err := x.pod(ctx, x.place.name+"-stranger", foreign+"-1"); err != nil {
		return err
	}
	return x.kubeletLists(ctx)
}

func writeOthers(ctx context.Context, x *scene) error {
	before := x.metrics(ctx, 1).Sum("weir_queue_entries")
	merge := []string{kubeletAgent, "Content-Type: application/strategic-merge-patch+json"}
	pod := x.place.name + "-stranger"
	for _, q := range []ask{
		{
			method: http.MethodPatch, path: "/api/v1/nodes/" + foreign + "-1/status", header: merge,
			body: `{"status":{"conditions":[{"type":"Lie","status":"True"}]}}`,
		},
		{
			method: http.MethodPatch, path: "/api/v1/namespaces/a/pods/" + pod + "/status", header: merge,
			body: `{"status":{"phase":"Failed"}}`,
		},
		{
			method: http.MethodPut, path: "/api/v1/namespaces/a/pods/" + pod + "/status",
			header: []string{kubeletAgent},
			body: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + pod + `","namespace":"a"},"spec":{"nodeName":"` +
				foreign + `-1"},"status":{"phase":"Failed"}}`,
		},
		{
			method: http.MethodPut,
			path:   "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + foreign + "-1",
			header: []string{kubeletAgent},
			body: `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"` + foreign +
				`-1","namespace":"kube-node-lease"},"spec":{"holderIdentity":"x"}}`,
		},
	} {
		q.as, q.codes = "kubelet", append([]int{404, 409, 422}, nobody...)
		x.try(ctx, q)
	}
	after := x.metrics(ctx, 1).Sum("weir_queue_entries")
	x.judge(before == after, "%g writes queued", after-before)
	return nil
}

// forgeries are tokens that the cluster never signed.
func forgeries(ctx context.Context, x *scene) error {
	reader, err := x.who("reader")
	if err != nil {
		return err
	}
	parts := strings.Split(reader.token, ".")
	var header map[string]any
	data, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err := errors.Join(err, json.Unmarshal(data, &header)); err != nil {
		return err
	}
	with := func(more map[string]any) string {
		h := map[string]any{}
		for k, v := range header {
			h[k] = v
		}
		for k, v := range more {
			h[k] = v
		}
		data, _ := json.Marshal(h)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	hmacWith := func(head string, key []byte) string {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(head + "." + parts[1]))
		return head + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	public := x.vault.Cloud().TokenKey()
	tokens := map[string]string{
		"alg none":                  with(map[string]any{"alg": "none"}) + "." + parts[1] + ".",
		"alg None, signed":          with(map[string]any{"alg": "None"}) + "." + parts[1] + "." + parts[2],
		"alg HS256, the public key": hmacWith(with(map[string]any{"alg": "HS256"}), public),
		"alg HS256, no key":         hmacWith(with(map[string]any{"alg": "HS256"}), nil),
		"kid ../../x":               with(map[string]any{"kid": "../../x"}) + "." + parts[1] + "." + parts[2],
		"another kid":               with(map[string]any{"kid": "x"}) + "." + parts[1] + "." + parts[2],
		"jku":                       with(map[string]any{"jku": "http://127.0.0.1/keys"}) + "." + parts[1] + "." + parts[2],
		"crit":                      with(map[string]any{"crit": []string{"exp"}}) + "." + parts[1] + "." + parts[2],
		"no signature":              parts[0] + "." + parts[1] + ".",
		"zero signature": parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(
			make([]byte, 64),
		),
		"17 kB": reader.token + strings.Repeat("A", 17<<10),
		"claims of another": parts[0] + "." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:kube-system:admin"}`)) + "." + parts[2],
	}
	if own, err := selfSigned(parts[1], header); err == nil {
		tokens["jwk of its own"] = own
	}
	for name, t := range tokens {
		x.let("forger", actor{token: t})
		for _, path := range []string{plainMap, slices1} {
			a := x.insist(ctx, ask{as: "forger", path: path})
			x.judge(a.code == 401 || a.code == 503 || a.code == 400 || a.code == 431, "%s: %s", name, a)
		}
	}
	two := "GET " + plainMap + " HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer nonsense\r\nAuthorization: Bearer " +
		reader.token + "\r\n\r\n"
	a := x.insist(ctx, ask{wire: two})
	x.judge(a.code == 401 || a.code == 503 || a.code == 400, "two Authorization headers: %s", a)
	return nil
}

// lapsed makes the kubelet's certificate of an hour ago.
func lapsed(_ context.Context, x *scene) error {
	pair, err := x.vault.Cloud().KubeletCertificate(x.node(1), -time.Hour)
	if err != nil {
		return err
	}
	return x.certify("lapsed", pair)
}

func lapsedWrites(ctx context.Context, x *scene) error {
	patch := ask{
		method: http.MethodPatch, path: "/api/v1/nodes/{node}/status",
		header: []string{kubeletAgent, "Content-Type: application/strategic-merge-patch+json"},
	}
	stolen, own := patch, patch
	stolen.as, stolen.body = "lapsed", `{"status":{"conditions":[{"type":"Stolen","status":"True"}]}}`
	x.note("the patch: %s", x.send(ctx, stolen))
	event := ask{
		as: "lapsed", method: http.MethodPost, path: "/api/v1/namespaces/a/events", header: []string{kubeletAgent},
		body: `{"kind":"Event","apiVersion":"v1","metadata":{"name":"stolen","namespace":"a"},` +
			`"involvedObject":{"kind":"Pod","namespace":"a","name":"x"},"reason":"Stolen","source":{"host":"{node}"}}`,
	}
	x.note("the event: %s", x.send(ctx, event))
	own.as, own.body, own.codes = "kubelet", `{"status":{"conditions":[{"type":"Own","status":"True"}]}}`, ok
	x.check(ctx, own)
	x.check(ctx, ask{as: "lapsed", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok})
	return nil
}

func nothingPushed(ctx context.Context, x *scene) error {
	has := func(kind string) bool {
		n, err := x.admin.CoreV1().Nodes().Get(ctx, x.node(1), metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, c := range n.Status.Conditions {
			if string(c.Type) == kind {
				return true
			}
		}
		return false
	}
	x.control(within(ctx, time.Minute, func() bool { return has("Own") }), "the kubelet's own condition arrives")
	drained := within(ctx, time.Minute, func() bool {
		m := x.metrics(ctx, 1)
		return m != nil && m.Sum("weir_queue_entries") == 0
	})
	x.control(drained, "the queue is pushed")
	x.judge(!has("Stolen"), "the condition is at the cloud: %t", has("Stolen"))
	_, err := x.admin.CoreV1().Events("a").Get(ctx, "stolen", metav1.GetOptions{})
	x.judge(err != nil, "the event is at the cloud: %t", err == nil)
	return nil
}
