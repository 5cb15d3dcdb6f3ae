package autonomy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/sim/runner"
)

const (
	answerPatience = 30 * time.Second
	answerEvery    = 10 * time.Millisecond
	configMapPath  = "/api/v1/namespaces/default/configmaps/" + readable
	kubeletAgent   = "hollow-kubelet" // as sim/controlplane/hollow-node calls itself
)

// attempts are those to read at a hub without the cloud.
type attempts struct {
	refused, allowed, wrong int

	own, foreign string // tokens of pods of the first node, and of another

	old   string       // own, but it has ended long ago; empty: nothing expires
	stray *rest.Config // as the first node's kubelet, but its certificate has ended long ago
}

// prepare gets tokens of pods, and lets the one of the first node's pod read what it will read again without the cloud.
func (a *attempts) prepare(ctx context.Context, c *column) (err error) {
	if a.own, err = podToken(ctx, c, c.nodes[0]); err != nil || len(c.nodes) < 2 {
		return err
	}
	if a.foreign, err = podToken(ctx, c, c.nodes[1]); err != nil {
		return err
	}
	for _, x := range []struct{ node, token string }{{c.nodes[0], a.own}, {c.nodes[1], a.foreign}} {
		if code, err := try(ctx, bearer(c.kubelet(x.node), x.token), configMapPath); code != http.StatusOK {
			return fmt.Errorf("a pod of %s reads its ConfigMap through its hub: %d, %w", x.node, code, err)
		}
	}
	return nil
}

// podToken asks for what the kubelet would mount into the first pod of a node.
func podToken(ctx context.Context, c *column, node string) (string, error) {
	p := c.recorder.pod(podNames(node, 1)[0])
	answer, err := c.admin.CoreV1().ServiceAccounts(corev1.NamespaceDefault).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To[int64](3600),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID},
		}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// make lets all kinds of callers try to read at the hub of a node: without the cloud, or with it while what they have
// has expired.
func (a *attempts) make(ctx context.Context, c *column, node string) error {
	hub, away := c.kubelet(node), c.offline(node)
	other := rest.CopyConfig(hub)
	other.TLSClientConfig = c.kubelet(c.nodes[len(c.nodes)-1]).TLSClientConfig
	c.mu.Lock()
	own, foreign, old, stray := a.own, a.foreign, a.old, a.stray
	c.mu.Unlock()
	type attempt struct {
		who    string
		config *rest.Config
		path   string
		may    bool
	}
	tries := []attempt{
		{"the node, its pods", agent(hub, kubeletAgent), podsPath(node), away},
		{"a pod of the node, what it read before", bearer(hub, own), configMapPath, away},
		{
			"a pod of the node, what it may not read", bearer(hub, own), "/api/v1/namespaces/default/secrets/" +
				podNames(node, 1)[0], false,
		},
		{"another node", other, podsPath(node), false},
		{"a token that is none", bearer(hub, "junk"), configMapPath, false},
		{"a token that was changed", bearer(hub, own[:len(own)-4]+"AAAA"), configMapPath, false},
		{"nobody", bearer(hub, ""), configMapPath, false},
	}
	if away { // the cloud takes it anywhere
		tries = append(tries, attempt{"a pod of another node", bearer(hub, foreign), configMapPath, false})
	}
	if old != "" {
		tries = append(tries, attempt{"a pod of the node, its token too old", bearer(hub, old), configMapPath, false},
			attempt{"the node, its certificate too old", agent(stray, kubeletAgent), podsPath(node), false})
	}
	for _, x := range tries {
		code, err := try(ctx, x.config, x.path)
		c.mu.Lock()
		if code == http.StatusOK {
			a.allowed++
		} else {
			a.refused++
		}
		wrong := (code == http.StatusOK) != x.may
		if wrong {
			a.wrong++
		}
		c.mu.Unlock()
		if wrong {
			c.Note(fmt.Sprintf("wrong answer to %s: %d (%v)", x.who, code, err))
		}
	}
	return nil
}

func podsPath(node string) string {
	return "/api/v1/pods?" + url.Values{"fieldSelector": {"spec.nodeName=" + node}}.Encode()
}

func agent(c *rest.Config, name string) *rest.Config {
	c = rest.CopyConfig(c)
	c.UserAgent = name
	return c
}

// bearer is the way of a pod: without the node's certificate, with a token.
func bearer(c *rest.Config, token string) *rest.Config {
	c = rest.AnonymousClientConfig(c)
	c.BearerToken, c.UserAgent = token, "app"
	return c
}

// try asks over a connection of its own; the error has the first of a refusal.
func try(ctx context.Context, c *rest.Config, path string) (code int, err error) {
	code, body, err := get(ctx, c, path)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%.300s", body)
	}
	return code, err
}

// get asks over a connection of its own.
func get(ctx context.Context, c *rest.Config, path string) (code int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return 0, nil, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Host+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return resp.StatusCode, body, err
}

// awaitAnswer starts to ask a hub that is about to start for the pods of its node, and returns what waits for the
// answer.
func (c *column) awaitAnswer(ctx context.Context, node string) (wait func()) {
	began, done := time.Now(), make(chan struct{})
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	go func() {
		defer close(done)
		defer cancel()
		for {
			if code, _ := try(ctx, agent(c.kubelet(node), kubeletAgent), podsPath(node)); code == http.StatusOK {
				c.mu.Lock()
				c.firstAnswer = max(c.firstAnswer, time.Since(began))
				c.mu.Unlock()
				return
			}
			if !runner.Slept(ctx, answerEvery) {
				c.Note("the hub of " + node + " does not list the pods of its node")
				return
			}
		}
	}()
	return func() { <-done }
}
