package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/kms/pkg/service"

	"github.com/weir-edge/weir/sim/testca"
)

// readyPoll is how often kube-apiserver is asked whether it says what its keys make it say. It asks for their health
// every 20 s.
const readyPoll = time.Second

// encryption makes kube-apiserver ask a key service (KMS v2) about a resource that nothing uses.
const encryption = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [podtemplates]
  providers:
  - kms: {apiVersion: v2, name: testbed, endpoint: %q, timeout: 3s}
  - identity: {}
`

// keys is a key service of kube-apiserver. While it is down, kube-apiserver says at /readyz that it is not ready, and
// serves everything else.
type keys struct {
	server *service.GRPCService
	served chan struct{} // closed when it has ended
	down   atomic.Bool
}

// startKeys writes the files that the apiserver needs, starts the service and returns it with the apiserver's flags.
func startKeys(dir string) (*keys, []string, error) {
	folder, err := os.MkdirTemp("", "weir-kms-") // the path of a socket is short
	if err != nil {
		return nil, nil, fmt.Errorf("start a key service: %w", err)
	}
	socket := filepath.Join(folder, "kms.sock")
	file, err := testca.WriteFile(dir, "encryption.yaml", fmt.Appendf(nil, encryption, "unix://"+socket))
	if err != nil {
		return nil, nil, err
	}
	k := &keys{served: make(chan struct{})}
	k.server = service.NewGRPCService(socket, 10*time.Second, k)
	go func() {
		defer close(k.served)
		_ = k.server.ListenAndServe() // kube-apiserver says in its log what it misses
		_ = os.RemoveAll(folder)
	}()
	return k, []string{"--encryption-provider-config=" + file}, nil
}

func (k *keys) close() {
	k.server.Close()
	<-k.served
}

const keyID = "testbed"

var errKeysDown = errors.New("the key service is down")

// Status implements service.Service.
func (k *keys) Status(context.Context) (*service.StatusResponse, error) {
	if k.down.Load() {
		return nil, errKeysDown
	}
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: keyID}, nil
}

// Encrypt implements service.Service. There is nothing to hide.
func (k *keys) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	if k.down.Load() {
		return nil, errKeysDown
	}
	return &service.EncryptResponse{Ciphertext: data, KeyID: keyID}, nil
}

// Decrypt implements service.Service.
func (k *keys) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	if k.down.Load() {
		return nil, errKeysDown
	}
	return req.Ciphertext, nil
}

// SetReady makes kube-apiserver say that it is ready, or that it is not while it serves everything, and waits until it
// says so. The configuration has to have Keys.
func (c *Cloud) SetReady(ctx context.Context, ready bool) error {
	if c.keys == nil {
		return errors.New("make kube-apiserver unready: it was started without a key service")
	}
	c.keys.down.Store(!ready)
	client, err := rest.HTTPClientFor(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("ask whether kube-apiserver is ready: %w", err)
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL()+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if (resp.StatusCode == http.StatusOK) == ready {
				return nil
			}
			err = errors.New(resp.Status)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver says %w at /readyz, want ready %v: %w", err, ready, ctx.Err())
		}
	}
}
