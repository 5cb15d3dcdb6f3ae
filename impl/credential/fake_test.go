package credential

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/pki"
)

// cloud is a kube-apiserver in memory with a signer: as much of both as a Keeper uses.
type cloud struct {
	mu       sync.Mutex
	requests map[string]*certificatesv1.CertificateSigningRequest
	names    []string // of all that were made, in order
	keys     map[string]bool
	reads    int
	sent     bytes.Buffer // all that came in

	away   bool                                              // nobody answers
	lose   bool                                              // the next answer is lost
	code   int                                               // creating is answered so; 0: it is done
	answer func(r *certificatesv1.CertificateSigningRequest) // the manager; nil: it is away
}

func newCloud(answer func(*certificatesv1.CertificateSigningRequest)) *cloud {
	return &cloud{
		requests: map[string]*certificatesv1.CertificateSigningRequest{}, keys: map[string]bool{}, answer: answer,
	}
}

// set changes the cloud.
func (c *cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// RoundTrip implements http.RoundTripper.
func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errors.New("no route to host")
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	c.sent.Write(body)
	code, out := c.serve(req, body)
	if c.lose {
		c.lose = false
		return nil, errors.New("connection reset by peer")
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text))}, nil
}

func status(code int, reason metav1.StatusReason) (int, any) {
	return code, metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)}
}

func (c *cloud) serve(req *http.Request, body []byte) (int, any) {
	name := strings.TrimPrefix(req.URL.Path, requestsPath)
	if req.Method == http.MethodPost {
		r := &certificatesv1.CertificateSigningRequest{}
		if err := json.Unmarshal(body, r); err != nil || name != "" {
			return status(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		}
		if c.code != 0 {
			return status(c.code, metav1.StatusReasonUnauthorized)
		}
		if c.requests[r.Name] != nil {
			return status(http.StatusConflict, metav1.StatusReasonAlreadyExists)
		}
		c.requests[r.Name] = r
		c.names = append(c.names, r.Name)
		c.keys[publicKey(r)] = true
		return http.StatusCreated, r
	}
	c.reads++
	r := c.requests[strings.TrimPrefix(name, "/")]
	if r == nil {
		return status(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if c.answer != nil && len(r.Status.Conditions) == 0 {
		c.answer(r)
	}
	return http.StatusOK, r
}

func publicKey(r *certificatesv1.CertificateSigningRequest) string {
	return string(must(pki.ParseRequest(r.Spec.Request)).RawSubjectPublicKeyInfo)
}

// signer answers as weir-manager does, for a life.
func signer(a *pki.Authority, life time.Duration) func(*certificatesv1.CertificateSigningRequest) {
	return func(r *certificatesv1.CertificateSigningRequest) {
		i := pki.SignedBy(r.Spec.SignerName)[0]
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
		r.Status.Certificate = must(
			a.Sign(must(i.Template(subject, time.Now(), life)), must(pki.ParseRequest(r.Spec.Request)).PublicKey))
	}
}

// denier answers no.
func denier(message string) func(*certificatesv1.CertificateSigningRequest) {
	return func(r *certificatesv1.CertificateSigningRequest) {
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateDenied, Reason: "WeirDenied", Message: message,
		}}
	}
}
