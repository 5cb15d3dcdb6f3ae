package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/testca"
)

// fakeCoordinator is a server at the address of the pool's coordinator, with a certificate of the pool. It serves until
// the returned function is called.
func (x *scene) fakeCoordinator(ctx context.Context, h http.Handler) (stop func(), err error) {
	authority, err := x.vault.Authority(x.place.name)
	if err != nil {
		return nil, err
	}
	address, err := x.vault.Coordinator(x.place.name)
	if err != nil {
		return nil, err
	}
	host, _, _ := strings.Cut(address, ":")
	pair, err := authority.Issue(testca.Request{CommonName: "weir-coordinator", Hosts: []string{host}})
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	l, err := tls.Listen(
		"tcp", address,
		&tls.Config{
			Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
		},
	)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: answerPatience,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	return func() { _ = server.Close(); <-ended }, ctx.Err()
}

// forgedKeys shows a hub without keys those of the attacker, and proves them by a token that the cloud never judged.
func forgedKeys(ctx context.Context, x *scene) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	sum := sha256.Sum256(der)
	kid := base64.RawURLEncoding.EncodeToString(sum[:])
	set, err := json.Marshal(
		jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"}}},
	)
	if err != nil {
		return err
	}
	stop, err := x.fakeCoordinator(ctx, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == contract.DocumentsPath && req.URL.Query().Get("path") == documents.Keys {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Etag", `"forged"`)
			_, _ = w.Write(set)
			return
		}
		pretend(w, req, 0)
	}))
	if err != nil {
		return err
	}
	x.keep("stop", stop)
	defer stop()
	reader, err := x.who("reader")
	if err != nil {
		return err
	}
	sign := func(account string) (string, error) { return resigned(reader.token, key, kid, account) }
	first, err := sign("attacker")
	if err != nil {
		return err
	}
	second, err := sign("reader2")
	if err != nil {
		return err
	}
	x.let("forged", actor{token: first})
	x.let("forged account", actor{token: second})
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	for range 100 { // it has to be the first token that the hub sees
		for _, trick := range tricks() {
			if a := x.send(ctx, ask{wire: withTrick("/version", first, trick)}); a.code == http.StatusOK {
				x.note("/version with the trick: 200")
				break
			}
		}
		if within(ctx, 100*time.Millisecond, func() bool { return false }) {
			break
		}
	}
	// Another token would have the hub ask the cloud for keys.
	q := ask{as: "kubelet", path: "/api/v1/nodes/{node}", header: []string{kubeletAgent}, codes: ok}
	return until(ctx, "the kubelet to be served", func() bool { return x.send(ctx, q).right(q) })
}

// resigned is a token with another account, signed with another key.
func resigned(token string, key *ecdsa.PrivateKey, kid, account string) (string, error) {
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil,
	)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign([]byte(strings.ReplaceAll(string(claims), "reader", account)))
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// pretend answers as a coordinator that is well, fed and in a history.
func pretend(w http.ResponseWriter, req *http.Request, history uint64) {
	if history > 0 {
		w.Header().Set(rest.HistoryHeader, fmt.Sprintf("%d/0", history))
	}
	switch req.URL.Path {
	case "/healthz", "/readyz", "/livez":
		_, _ = io.WriteString(w, "ok")
	case contract.StatusPath:
		w.Header().Set("Content-Type", "application/json")
		var resources []map[string]any
		for _, name := range []string{"endpoints.v1.", "endpointslices.v1.discovery.k8s.io"} {
			resources = append(
				resources,
				map[string]any{
					"resource": name, "synced": true, "ready": true, "version": uint64(9e18), "history": history,
					"feeder": "x",
				},
			)
		}
		_ = json.NewEncoder(w).Encode(
			map[string]any{"incarnation": "fake", "leader": "x", "ready": true, "resources": resources},
		)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(
			w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`,
		)
	}
}

// lyingCoordinator answers a hub with too much and with nonsense.
func lyingCoordinator(ctx context.Context, x *scene) error {
	stop, err := x.fakeCoordinator(ctx, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		flood := func(head, unit string, bytes int) {
			_, _ = io.WriteString(w, head)
			for n := 0; n < bytes; n += len(unit) {
				if _, err := io.WriteString(w, unit); err != nil {
					return
				}
			}
		}
		ballast := strings.Repeat("x", 64<<10)
		switch p := req.URL.Path; {
		case p == contract.DocumentsPath && req.Method == http.MethodGet:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Etag", `"x"`)
			flood(`{"x":"`, ballast, 1<<30)
		case strings.HasPrefix(p, poolLeases) && (req.Method == http.MethodPost || req.Method == http.MethodPut):
			// the hub may lead.
			body, _ := io.ReadAll(io.LimitReader(req.Body, 1<<20))
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(
				w, strings.Replace(string(body), `"metadata":{`, `"metadata":{"uid":"x","resourceVersion":"5",`, 1),
			)
		case strings.HasSuffix(p, "/leases"):
			w.Header().Set("Content-Type", "application/json")
			lease := func(name string) string {
				return fmt.Sprintf(
					`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":%q,"namespace":"kube-node-lease",`+
						`"resourceVersion":"1","annotations":{%q:"true"}},"spec":{"holderIdentity":%q,`+
						`"leaseDurationSeconds":2147483647,"renewTime":"9999-12-31T23:59:59.999999Z"}}`,
					name, contract.DelegateHeartbeat, name,
				)
			}
			names := []string{"..", "a/b", "../../secrets/x", "", strings.Repeat("n", 100_000)}
			if req.URL.Query().Get("watch") != "" {
				for _, n := range names {
					flood("", `{"type":"ADDED","object":`+lease(n)+"}\n", 1)
				}
				flood("", `{"type":"MODIFIED","object":`+lease("loop")+"}\n", 256<<20)
				return
			}
			items := make([]string, 0, len(names))
			for _, n := range names {
				items = append(items, lease(n))
			}
			_, _ = io.WriteString(
				w,
				`{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[`+
					strings.Join(items, ",")+"]}",
			)
		case strings.HasPrefix(p, "/api/v1/endpoints") || strings.HasPrefix(p, slices1):
			w.Header().Set(rest.HistoryHeader, fmt.Sprintf("%d/0", uint64(math.MaxUint64)))
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
			flood("\x7f\xff\xff\xff", ballast, 256<<20)
		default:
			pretend(w, req, math.MaxUint64)
		}
	}))
	if err != nil {
		return err
	}
	defer stop()
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	q := ask{as: "reader", path: slices1, codes: ok, has: "shop-1"}
	var peak, first proc.Usage
	first, err = x.hub(1).Usage()
	if err != nil {
		return err
	}
	began := time.Now()
	served := within(ctx, 90*time.Second, func() bool {
		if u, err := x.hub(1).Usage(); err == nil && u.RSSAnon > peak.RSSAnon {
			peak = u
		}
		for _, path := range []string{"/apis", "/api"} { // what the pool shares
			x.send(ctx, ask{as: "reader", path: path, header: []string{"Accept: " + documents.Accept}})
		}
		return time.Since(began) > 30*time.Second && x.send(ctx, q).right(q)
	})
	a := x.send(ctx, q)
	grown := (peak.RSSAnon - first.RSSAnon) >> 20
	x.judge(served, "slices: %s, what the cloud has: %t", a, served)
	x.judge(grown < 128 && x.hub(1).Running(), "RssAnon +%d MB, the hub runs: %t", grown, x.hub(1).Running())
	x.check(ctx, ask{as: "reader", path: plainMap, codes: ok, has: "hello"})
	return nil
}
