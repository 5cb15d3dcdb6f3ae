package inmemory

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/nodelease"
)

// bed is a coordinator without hubs.
type bed struct {
	*Coordinator
	t      *testing.T
	leases *Leases
	clock  *clocktesting.FakeClock
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, leases: NewLeases("1", 0), clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	var err error
	if b.Coordinator, err = New(Config{Pool: "p", Leases: b.leases, Clock: b.clock}); err != nil {
		t.Fatal(err)
	}
	return b
}

// do sends what the hub of a node sends, and wants a code.
func (b *bed) do(node, method, path, body string, want int) *coordinationv1.Lease {
	b.t.Helper()
	req := httptest.NewRequestWithContext(b.t.Context(), method, "https://c"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: contract.NodeUserPrefix + node}}}}
	w, l := httptest.NewRecorder(), &coordinationv1.Lease{}
	b.ServeHTTP(w, req)
	if w.Code != want {
		b.t.Errorf("%s %s of %s: %d %s, want %d", method, path, node, w.Code, w.Body, want)
	}
	if err := json.Unmarshal(w.Body.Bytes(), l); err != nil {
		b.t.Error(err)
	}
	return l
}

const poolLeases = "/apis/coordination.k8s.io/v1/namespaces/" + contract.LeaseNamespace + "/leases"

// held is the body of a Lease that a node holds from now on; meta is what is known of the stored one.
func held(name string, meta metav1.ObjectMeta, node string) string {
	return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q,"uid":%q,"resourceVersion":%q},"spec":{"holderIdentity":"%s_1","leaseDurationSeconds":15}}`,
		name, meta.UID, meta.ResourceVersion, node)
}

// TestNobodySeizesTheElection: the rules of the coordinator hold here, and its clock alone ends a Lease.
func TestNobodySeizesTheElection(t *testing.T) {
	b, none := newBed(t), metav1.ObjectMeta{}
	const election, sync = contract.ElectionLease, contract.InformerSync
	b.do("b", "POST", poolLeases, held(election, none, "a"), http.StatusForbidden)
	l := b.do("a", "POST", poolLeases, held(election, none, "a"), http.StatusCreated)
	b.do("b", "POST", poolLeases, held(election, none, "b"), http.StatusConflict)
	b.do("b", "POST", poolLeases, held(sync, none, "b"), http.StatusForbidden)
	b.do("a", "POST", poolLeases, held(sync, none, "a"), http.StatusCreated)
	if got := b.Leader(); got.Node != "a" || got.Term.String() != "1/"+l.ResourceVersion {
		t.Errorf("%+v leads", got)
	}
	b.clock.Step(14 * time.Second)
	b.do("b", "PUT", poolLeases+"/"+election, held(election, l.ObjectMeta, "b"), http.StatusConflict)
	renewed := b.do("a", "PUT", poolLeases+"/"+election, held(election, l.ObjectMeta, "a"), http.StatusOK)
	b.clock.Step(14 * time.Second)
	b.do("b", "PUT", poolLeases+"/"+election, held(election, renewed.ObjectMeta, "b"), http.StatusConflict)
	b.clock.Step(time.Second)
	b.do("b", "PUT", poolLeases+"/"+election, held(election, l.ObjectMeta, "b"), http.StatusConflict) // it was renewed since
	b.do("b", "PUT", poolLeases+"/"+election, held(election, renewed.ObjectMeta, "b"), http.StatusOK)
	if got := b.Leader().Node; got != "b" {
		t.Errorf("%s leads", got)
	}
}

// TestWatch: a watch of Leases with a label shows how they come and go, from any version that is remembered.
func TestWatch(t *testing.T) {
	b := newBed(t)
	at := nodelease.Path + "/a"
	b.do("a", "POST", nodelease.Path, held("a", metav1.ObjectMeta{}, "a"), http.StatusCreated)
	const label = `{"metadata":{"labels":{"openyurt.io/delegate-heartbeat":%s}}}`
	b.do("a", "PATCH", at, fmt.Sprintf(label, `"true"`), http.StatusOK)
	b.do("a", "PATCH", at, `{"spec":{"leaseDurationSeconds":40}}`, http.StatusOK)
	b.do("a", "PATCH", at, fmt.Sprintf(label, "null"), http.StatusOK)
	delegated := func(l *coordinationv1.Lease) bool { return l.Labels[contract.DelegateHeartbeat] != "" }
	enough := errors.New("enough")
	var got []string
	take := func(kind watch.EventType, l *coordinationv1.Lease) error {
		if got = append(got, fmt.Sprint(kind, " ", l.ResourceVersion)); kind == watch.Deleted {
			return enough
		}
		return nil
	}
	if err := b.leases.follow(t.Context(), "1", delegated, take); err != enough || strings.Join(got, ", ") != "ADDED 2, MODIFIED 3, DELETED 4" {
		t.Errorf("%v, %v", got, err)
	}
	for range maxChanges {
		if err := b.leases.Change(t.Context(), contract.NodeLeaseNamespace, "a", func(*coordinationv1.Lease) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.leases.follow(t.Context(), "3", delegated, take); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from a version that is forgotten: %v", err)
	}
}
