package attack

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/sim/link"
)

// The Secret of the canary, by its name and as a list of one.
const (
	secret  = "/api/v1/namespaces/a/secrets/canary"
	secret1 = "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dcanary"
)

// standAttacks are about what the cloud said, and for how long it counts: see "What stands" in package identity.
func standAttacks() []Attack {
	here := dry()
	reads := ask{as: "reader", path: plainMap, codes: ok, has: "hello"}
	return []Attack{
		{
			Number: "140", Position: Holder, Goal: "keep a right by hearing of its loss only once",
			Sent: "get and watch of a Secret are allowed; the grant goes; one get is forbidden, and nothing more is " +
				"asked; the link is cut, and both are asked again",
			Expected: "403", Control: "who is still allowed gets it", prepare: hearsOnce,
			asks: []ask{
				{as: "leaver", path: secret, codes: nobody, lacks: secret64},
				{as: "leaver", path: secret1, codes: nobody, lacks: secret64},
			},
			controls: []ask{{as: "stayer", path: secret, codes: ok, has: secret64}},
			place:    here, away: true,
		},
		{
			Number: "141", Position: Holder, Goal: "have a token that is meant for somebody else taken for one of the API",
			Sent: "many requests with a token for the API and for a vault; then the same pod's token for the vault alone, " +
				"while the cloud is away",
			Expected: "401", Control: "the token for both is served", before: []ask{reads}, prepare: twoAudiences,
			asks: []ask{
				{as: "vault alone", path: plainMap, codes: unknown}, {as: "vault alone", path: slices1, codes: unknown},
			},
			controls: []ask{{as: "vault and API", path: plainMap, codes: ok, has: "hello"}},
			place:    here, away: true,
		},
		{
			Number: "142", Position: Holder,
			Goal: "be served by an expired token, by filling the link until the cloud seems to be away",
			Sent: "over a link of 512 kbit/s: 24 at a time, reviews of 2 MB up and API documents down, by a good token, for " +
				"90 s; meanwhile the expired one reads what it was allowed",
			Expected: "401, 429 or 503, all the time",
			Control:  "a good token reads when the link is free again", Slow: true,
			before: []ask{reads, {as: "reader", path: slices1, codes: ok}}, prepare: expiredHere, play: saturate,
			controls: []ask{reads}, place: own("142"),
		},
	}
}

// hearsOnce has two who may read a Secret. One of them loses that, and hears of it once.
func hearsOnce(ctx context.Context, x *scene) error {
	for _, who := range []string{"leaver", "stayer"} {
		if err := grant(who, "get", "list", "watch")(ctx, x); err != nil {
			return err
		}
		for _, path := range []string{secret, secret1} {
			if a := x.send(ctx, ask{as: who, path: path}); a.code != http.StatusOK {
				return fmt.Errorf("%s as %s: %s", path, who, a)
			}
		}
	}
	if err := x.admin.RbacV1().RoleBindings("a").Delete(ctx, x.place.name+"-leaver", metav1.DeleteOptions{}); err != nil {
		return err
	}
	lost := ask{as: "leaver", at: cloudDoor, path: secret}
	if err := until(ctx, "the grant to go", func() bool { return x.send(ctx, lost).code == 403 }); err != nil {
		return err
	}
	for _, path := range []string{secret, secret1} {
		if a := x.send(ctx, ask{as: "leaver", path: path}); a.code != http.StatusForbidden {
			return fmt.Errorf("the hub says of what was taken away: %s", a)
		}
	}
	return x.sure(ctx)
}

// twoAudiences makes a token for two, which the cloud takes, and one for one of them, which it does not.
func twoAudiences(ctx context.Context, x *scene) error {
	api, err := x.ofPod(ctx, "api-audience")
	if err != nil {
		return err
	}
	var claims struct {
		Audiences []string `json:"aud"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(api, ".")[1])
	if err := errors.Join(err, json.Unmarshal(payload, &claims)); err != nil || len(claims.Audiences) == 0 {
		return fmt.Errorf("a token for the API names the audiences %q: %w", claims.Audiences, err)
	}
	both, err := x.ofPod(ctx, "two-audiences", append([]string{"vault"}, claims.Audiences...)...)
	x.let("vault and API", actor{token: both})
	if err != nil {
		return err
	}
	alone, err := x.ofPod(ctx, "vault-audience", "vault")
	x.let("vault alone", actor{token: alone})
	if err != nil {
		return err
	}
	for range 20 {
		for _, path := range []string{plainMap, slices1, "/version"} {
			if a := x.insist(ctx, ask{as: "vault and API", path: path}); a.code != http.StatusOK {
				return fmt.Errorf("the token for both gets %s: %s", path, a)
			}
		}
	}
	a := x.send(ctx, ask{as: "vault alone", at: cloudDoor, path: plainMap})
	if a.code != http.StatusUnauthorized {
		return fmt.Errorf("the cloud says of the token for the vault: %s", a)
	}
	return nil
}

// saturate fills a thin link by a good token, while an expired one tries to read.
func saturate(ctx context.Context, x *scene) error {
	const long, thin = 90 * time.Second, 512_000
	wire := x.site.Link(x.place.name)
	for _, dir := range []link.Direction{link.Up, link.Down} {
		before := wire.Rate(dir)
		wire.SetRate(dir, thin)
		defer wire.SetRate(dir, before)
	}
	filling, stop := context.WithTimeout(ctx, long)
	defer stop()
	junk := `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{` +
		`"namespace":"` + strings.Repeat("a", 2<<20) + `"}}}`
	var filler sync.WaitGroup
	defer filler.Wait()
	for i := range 24 {
		q := ask{as: "reader", path: "/openapi/v2", header: []string{"Accept: application/json"}}
		if i%2 == 0 {
			q = ask{as: "reader", method: http.MethodPost, body: junk,
				path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"}
		}
		filler.Go(func() {
			for filling.Err() == nil {
				x.send(filling, q)
			}
		})
	}
	crossed, looks, lost := x.crossed(), 0, 0
	away := func() bool {
		m := x.metrics(filling, 1)
		return m != nil && m.Sum("weir_hub_cloud_server_healthy") == 0
	}
	within(filling, long/3, away) // before anybody hears that the token has expired
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 9 {
		path := []string{plainMap, slices1, slicesOfA + "?watch=1&timeoutSeconds=1"}[i%3]
		filler.Go(func() {
			for filling.Err() == nil {
				a := x.send(filling, ask{as: "expired", path: path})
				mu.Lock()
				codes[a.code]++
				mu.Unlock()
				if a.code == http.StatusOK {
					x.judge(false, "%s: %s", path, a)
				}
			}
		})
	}
	_ = until(filling, "the end", func() bool {
		if looks++; away() {
			lost++
		}
		return false
	})
	stop()
	filler.Wait()
	x.judge(codes[http.StatusOK] == 0, "requests of the expired token, by code (0: no answer in time): %v", codes)
	x.note("%d kB crossed in %v; the hub took the cloud for away at %d of %d looks", (x.crossed()-crossed)>>10, long, lost,
		looks)
	return nil
}
