package writes

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

// maxToken bounds the answers to requests for tokens that are looked into.
const maxToken = 64 << 10

// tokens are those that the cloud issued to this node, by what they were asked for. They are kept in the store as
// objects of store.Tokens, sealed if Secrets are.
type tokens struct {
	store     *store.Store
	clock     clock.PassiveClock
	now       func() time.Time // by which hubs judge tokens
	allowance time.Duration    // for which they take them after their end

	mu      sync.Mutex
	version uint64                  // of the last that was kept
	ends    map[store.Key]time.Time // when each expires
}

func (t *tokens) shape() store.Shape {
	return store.Shape{Component: component, Resource: store.Tokens, Form: store.JSON}
}

// openTokens reads when those that are kept expire.
func openTokens(c Config) (*tokens, error) {
	t := &tokens{store: c.Store, clock: c.Clock, now: c.Now, allowance: c.Allowance, ends: map[store.Key]time.Time{}}
	all, ok := c.Store.Read(t.shape())
	if !ok {
		l, err := c.Store.List(t.shape(), tokenKind().Kind)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		t.version = uint64(c.Clock.Now().UnixMicro()) // above those of before, if what is kept was damaged
		l.Commit(t.version)
		return t, nil
	}
	t.version = all.Version // what goes on at another one is no whole list any more, and lost at the next start
	for o := range all.Items {
		var tr authenticationv1.TokenRequest
		if json.Unmarshal(o.Raw, &tr) == nil {
			t.ends[store.Key{Namespace: o.Namespace, Name: o.Name}] = expiry(&tr)
		}
	}
	return t, nil
}

// readToken reads what a token is asked for, or the answer to that.
func readToken(contentType string, body []byte) (*authenticationv1.TokenRequest, *apierrors.StatusError) {
	object, err := decode(tokenKind(), contentType, body)
	if err != nil {
		return nil, err
	}
	tr := &authenticationv1.TokenRequest{}
	if err := json.Unmarshal(object, tr); err != nil {
		return nil, apierrors.NewBadRequest("the body is no TokenRequest: " + err.Error())
	}
	return tr, nil
}

// tokenKey names what a token is for: account, object that it is bound to, audiences. How long it should last is
// ignored.
func tokenKey(r *write, tr *authenticationv1.TokenRequest) store.Key {
	audiences := slices.Sorted(slices.Values(tr.Spec.Audiences))
	bound := authenticationv1.BoundObjectReference{}
	if tr.Spec.BoundObjectRef != nil {
		bound = *tr.Spec.BoundObjectRef
	}
	what, _ := json.Marshal([]any{r.name, bound.Kind, bound.Name, bound.UID, audiences}) // strings always can be
	sum := sha256.Sum256(what)
	return store.Key{Namespace: r.namespace, Name: hex.EncodeToString(sum[:16])}
}

// spent reports whether no hub takes a token any more that ends then. Until that it is handed out: a pod that starts
// with it is served by hubs, which is all that there is, and its kubelet, which sees that it has ended, asks for a new
// one again and again.
func (t *tokens) spent(end time.Time) bool { return t.now().After(end.Add(t.allowance)) }

// serve answers a request for a token with the last that was issued for the same.
func (t *tokens) serve(r *write) (*answer, *apierrors.StatusError) {
	tr, refused := readToken(r.contentType, r.body)
	if refused != nil {
		return nil, refused
	}
	what := "service account " + r.namespace + "/" + r.name
	if b := tr.Spec.BoundObjectRef; b != nil {
		what += fmt.Sprintf(", %s %s", strings.ToLower(b.Kind), b.Name)
	}
	a := t.store.Get(component, store.Tokens, store.JSON, tokenKey(r, tr))
	if a.Knowledge != store.Known {
		return nil,
			unavailable("no token was issued for " + what + " with these audiences before, and a new one needs the cloud")
	}
	kept := &authenticationv1.TokenRequest{}
	if err := json.Unmarshal(a.Object.Raw, kept); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("read the kept token for %s: %w", what, err))
	}
	if end := expiry(kept); t.spent(end) {
		return nil,
			unavailable(
				fmt.Sprintf("the last token for %s expired at %s, hubs take it for %v after that, and a new one needs the cloud",
					what, end.UTC().Format(time.RFC3339), t.allowance))
	}
	kept.ObjectMeta = tr.ObjectMeta
	kept.Name, kept.Namespace = r.name, r.namespace
	b, err := json.Marshal(kept)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &answer{http.StatusCreated, tokenKind(), b}, nil
}

// expiry is when a token ends. Its claim counts: with --service-account-extend-token-expiration, which is the default,
// kube-apiserver takes a token for a year of which it says that it ends in an hour, so that its owner fetches a new
// one.
func expiry(tr *authenticationv1.TokenRequest) time.Time {
	end := tr.Status.ExpirationTimestamp.Time
	parts := strings.Split(tr.Status.Token, ".")
	if len(parts) != 3 {
		return end
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 {
		return end
	}
	return time.Unix(int64(claims.Exp), 0)
}

// keep keeps what the cloud issued, which is in the answer to a request, and drops what no hub takes any more.
func (t *tokens) keep(r *write, contentType string, answer []byte) error {
	kept, refused := readToken(contentType, answer)
	if refused != nil {
		return refused
	}
	asked, refused := readToken(r.contentType, r.body)
	if refused != nil {
		return refused
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := tokenKey(r, asked)
	kept.APIVersion, kept.Kind = tokenKind().APIVersion, tokenKind().Kind.Kind
	kept.Namespace, kept.Name, kept.ManagedFields = k.Namespace, k.Name, nil
	w, err := t.store.Watch(t.shape(), tokenKind().Kind, t.version, false)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := t.event(w, wire.Added, kept); err != nil {
		return err
	}
	t.ends[k] = expiry(kept)
	for k, end := range t.ends {
		if !t.spent(end) {
			continue
		}
		gone := &authenticationv1.TokenRequest{}
		gone.Namespace, gone.Name = k.Namespace, k.Name
		if err := t.event(w, wire.Deleted, gone); err != nil {
			return err
		}
		delete(t.ends, k)
	}
	return nil
}

// event tells the store, under a version of ours that only grows.
func (t *tokens) event(w *store.Watching, kind string, tr *authenticationv1.TokenRequest) error {
	t.version++
	tr.ResourceVersion = wire.FormatVersion(t.version)
	raw, err := json.Marshal(tr)
	if err != nil {
		return err
	}
	o, err := wire.ParseObject(wire.JSON, raw)
	if err != nil {
		return err
	}
	w.Event(&wire.Event{Type: kind, Object: o, Version: t.version})
	return nil
}
