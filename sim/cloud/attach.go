package cloud

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/testca"
)

// Attach returns a control plane that somebody else runs, with the identities and grants of one from Start. Nodes reach
// it at address and port, the administrator by the configuration; ca is its authority, with the key. Close leaves it
// alone, and there is no APIServer to do things to.
func Attach(ctx context.Context, address string, port int, admin *rest.Config, ca *testca.Authority) (*Cloud, error) {
	admin = rest.CopyConfig(admin)
	admin.QPS, admin.WarningHandler = -1, rest.NoWarnings{} // as in prepare
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("create administrator's client: %w", err)
	}
	c := &Cloud{config: Config{Address: address}, port: port, ca: ca, admin: admin, client: client}
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	return c, nil
}
