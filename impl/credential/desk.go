package credential

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	answerTime   = 30 * time.Second // of one request, over a thin link
	maxSigned    = 256 << 10        // of one
)

// desk is where requests are handed in: the certificates API of kube-apiserver.
type desk struct {
	cloud http.RoundTripper
}

// refusedError is an answer of kube-apiserver that is none to the question.
type refusedError struct {
	*apierrors.StatusError
	asked string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s: kube-apiserver answers %d: %s", e.asked, e.ErrStatus.Code, e.StatusError.Error())
}

func (e *refusedError) Unwrap() error { return e.StatusError }

func (d desk) create(ctx context.Context, r *certificatesv1.CertificateSigningRequest) (
	*certificatesv1.CertificateSigningRequest, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return d.ask(ctx, http.MethodPost, requestsPath, "create a request for a certificate", body)
}

func (d desk) read(ctx context.Context, name string) (*certificatesv1.CertificateSigningRequest, error) {
	return d.ask(ctx, http.MethodGet, requestsPath+"/"+name, "read the request "+name, nil)
}

// ask sends one request. Its address is a path: the server is known to the transport.
func (d desk) ask(ctx context.Context, method, path, asked string, body []byte) (
	*certificatesv1.CertificateSigningRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "https://cloud"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := d.cloud.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", asked, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSigned))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", asked, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		s := metav1.Status{}
		if json.Unmarshal(text, &s) != nil || int(s.Code) != resp.StatusCode {
			s = metav1.Status{
				Status: metav1.StatusFailure, Code: int32(resp.StatusCode), Message: http.StatusText(resp.StatusCode),
			}
		}
		return nil, &refusedError{&apierrors.StatusError{ErrStatus: s}, asked}
	}
	r := &certificatesv1.CertificateSigningRequest{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", asked, err)
	}
	return r, nil
}

// nameOf is what the request for a key is called. It follows from the key and what is asked for.
func nameOf(i pki.Identity, s pki.Subject, key crypto.Signer) (string, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(public, "%s %#v", i.Kind, s))
	return fmt.Sprintf("weir-%s-%x", i.Kind, sum[:16]), nil
}

// draft is the request for a key.
func draft(name string, i pki.Identity, s pki.Subject, life time.Duration, key crypto.Signer) (
	*certificatesv1.CertificateSigningRequest, error) {
	text, err := i.Request(s, key)
	if err != nil {
		return nil, err
	}
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	seconds := int32(life / time.Second)
	r.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: text, SignerName: i.Signer, ExpirationSeconds: &seconds,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
	}
	if i.Client {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageClientAuth)
	}
	if i.Server {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	return r, nil
}

// errPending says that nobody has decided yet.
var errPending = errors.New("nobody has answered the request yet")

// errUnjudged is of a certificate that nobody can judge yet: the first one of a pool is signed before the pool hears of
// its authority.
var errUnjudged = errors.New("the certificate is signed, and the authorities of the pool are not known yet: the " +
	"cloud tells them, or pool-ca.crt in --etc-dir")

// deniedError is a decision against a request.
type deniedError struct{ request, reason, message string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("request %s was refused (%s): %s", e.request, e.reason, e.message)
}

// told bounds what a stranger said.
const told = 500

// signed is the certificate of a request.
func signed(r *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	for _, c := range r.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return nil, &deniedError{r.Name, c.Reason, c.Message[:min(len(c.Message), told)]}
		}
	}
	if len(r.Status.Certificate) == 0 {
		if r.Spec.SignerName == contract.KubeletSigner {
			return nil, fmt.Errorf("%w: does the cluster approve and sign %s for its nodes?", errPending, r.Spec.SignerName)
		}
		return nil, fmt.Errorf("%w: is weir-manager there, with --certificates=sign?", errPending)
	}
	return r.Status.Certificate, nil
}
