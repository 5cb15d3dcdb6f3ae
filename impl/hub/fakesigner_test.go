package hub

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/pki"
)

const certificateRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// fakeSigner is the certificates API of a cloud, and a weir-manager that signs all that is asked for as its table says.
type fakeSigner struct {
	t     testing.TB
	user  func(*http.Request) string
	mux   *http.ServeMux
	mu    sync.Mutex
	as    map[string]*authority      // by signer; none: the manager is away
	life  map[pki.Kind]time.Duration // none: what is asked for
	asked map[string]*certificatesv1.CertificateSigningRequest
	by    []string // "user kind node", in order
}

func newFakeSigner(t testing.TB, user func(*http.Request) string) *fakeSigner {
	s := &fakeSigner{
		t: t, user: user, mux: http.NewServeMux(), life: map[pki.Kind]time.Duration{},
		asked: map[string]*certificatesv1.CertificateSigningRequest{},
	}
	s.mux.HandleFunc("POST "+certificateRequests, s.create)
	s.mux.HandleFunc("GET "+certificateRequests+"/{name}", s.read)
	return s
}

// ServeHTTP implements http.Handler.
func (s *fakeSigner) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mux.ServeHTTP(w, req)
}

func (s *fakeSigner) create(w http.ResponseWriter, req *http.Request) {
	r := &certificatesv1.CertificateSigningRequest{}
	if err := json.NewDecoder(req.Body).Decode(r); err != nil {
		return // the hub has left
	}
	if s.asked[r.Name] != nil {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists})
		return
	}
	i, subject := s.of(r)
	s.by = append(s.by, strings.Join([]string{s.user(req), string(i.Kind), subject.Node}, " "))
	s.asked[r.Name] = r
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(r)
}

// of reads who a request is for.
func (s *fakeSigner) of(r *certificatesv1.CertificateSigningRequest) (pki.Identity, pki.Subject) {
	text, err := pki.ParseRequest(r.Spec.Request)
	check(s.t, err)
	for _, i := range pki.SignedBy(r.Spec.SignerName) {
		if subject, ok := i.Read(text.Subject.CommonName); ok {
			subject.Pool, subject.Hosts = "pool-a", slices.Clone(text.DNSNames)
			for _, ip := range text.IPAddresses {
				subject.Hosts = append(subject.Hosts, ip.String())
			}
			return i, subject
		}
	}
	s.t.Fatalf("a request of %s for %s", text.Subject, r.Spec.SignerName)
	return pki.Identity{}, pki.Subject{}
}

func (s *fakeSigner) read(w http.ResponseWriter, req *http.Request) {
	r := s.asked[req.PathValue("name")]
	if r == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if by := s.as[r.Spec.SignerName]; by != nil && len(r.Status.Certificate) == 0 {
		keyPEM, err := pki.EncodeKey(by.key)
		check(s.t, err)
		a, err := pki.LoadAuthority(by.pem, keyPEM)
		check(s.t, err)
		i, subject := s.of(r)
		life := s.life[i.Kind]
		if life == 0 {
			life = time.Duration(*r.Spec.ExpirationSeconds) * time.Second
		}
		template, err := i.Template(subject, time.Now(), life)
		check(s.t, err)
		text, err := pki.ParseRequest(r.Spec.Request)
		check(s.t, err)
		check(s.t, i.CheckRequest(text, subject))
		r.Status.Certificate, err = a.Sign(template, text.PublicKey)
		check(s.t, err)
	}
	_ = json.NewEncoder(w).Encode(r)
}

// requests are all that were made, in order: "user kind node".
func (s *fakeSigner) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.by...)
}

// signs is the manager that comes back; without authorities it goes away.
func (s *fakeSigner) signs(cluster, pool *authority) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.as = map[string]*authority{
		"kubernetes.io/kube-apiserver-client": cluster, "weir.dev/hub": pool, "weir.dev/coordinator": pool,
		"weir.dev/replica": pool,
	}
}
