package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/revocation"
)

// each makes a command that does something for each of the nodes that are named. One that fails does not keep the
// others.
func each(do func(ctx context.Context, cluster *commands.Cluster, node string) (string, error)) func(
	fs *pflag.FlagSet) commands.Run {
	return func(fs *pflag.FlagSet) commands.Run {
		flags := commands.BindCluster(fs)
		return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
			if len(args) == 0 {
				return cli.Usage("arguments", "", "NAME...: the names of nodes")
			}
			cluster, err := flags.Cluster()
			if err != nil {
				return err
			}
			var failed []string
			for _, node := range args {
				said, err := do(ctx, cluster, node)
				if err != nil {
					failed = append(failed, fmt.Sprintf("node %s: %v", node, err))
					continue
				}
				fmt.Fprintf(stdout, "node %s: %s\n", node, said)
			}
			if len(failed) > 0 {
				return errors.New(strings.Join(failed, "; "))
			}
			return nil
		}
	}
}

// line writes the line of a node in the ConfigMap of the policy weir-revoked; "": it goes.
func line(ctx context.Context, c *commands.Cluster, node string, next func(now string) (string, error)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var m corev1.ConfigMap
		if err := c.Get(ctx, client.ObjectKey{Namespace: contract.ManagerNamespace, Name: contract.RevokedNodes},
			&m); err != nil {
			return fmt.Errorf("read ConfigMap %s/%s, which comes with weir-manager: %w", contract.ManagerNamespace,
				contract.RevokedNodes, err)
		}
		text, err := next(m.Data[node])
		if err != nil || text == m.Data[node] {
			return err
		}
		if m.Data = maps.Clone(m.Data); m.Data == nil {
			m.Data = map[string]string{}
		}
		if m.Data[node] = text; text == "" {
			delete(m.Data, node)
		}
		return c.Update(ctx, &m)
	})
}

// revoke says first that the deletion is meant, and that the node cannot register itself again. So there is no moment
// in which it could, and weir-manager asks nobody.
func revoke(ctx context.Context, c *commands.Cluster, name string) (string, error) {
	var n corev1.Node
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, &n); {
	case apierrors.IsNotFound(err):
		return "its deletion is confirmed", line(ctx, c, name, func(now string) (string, error) {
			b, ok := revocation.ParseBarred(now)
			if now == "" || !ok {
				return now, errors.New("there is no Node of this name, and none of a pool was deleted: see kubectl get nodes")
			}
			b.Unconfirmed = false
			return b.String(), nil
		})
	case err != nil:
		return "", err
	}
	pool := n.Labels[contract.NodePoolLabel]
	if pool == "" {
		return "", fmt.Errorf("it is in no pool, and Weir has nothing to revoke: kubectl delete node %s", name)
	}
	b := revocation.Barred{At: c.Now(), Pool: pool, UID: string(n.UID)}
	if err := line(ctx, c, name, func(string) (string, error) { return b.String(), nil }); err != nil {
		return "", err
	}
	if err := c.Delete(ctx, &n, client.Preconditions{UID: &n.UID}); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("its name is barred, and its Node is there still: %w", err)
	}
	return "its Node is deleted: weir-manager revokes its certificates at once, and it cannot register itself again", nil
}

// restore makes the Node first: a kubelet that runs does not register itself again, and goes on with the Node that it
// finds.
func restore(ctx context.Context, c *commands.Cluster, name string) (said string, err error) {
	said = "it may register itself again"
	err = line(ctx, c, name, func(now string) (string, error) {
		if now == "" {
			return "", errors.New("none of this name was deleted from a pool, or it was restored already")
		}
		if b, ok := revocation.ParseBarred(now); ok {
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Name: name, Labels: map[string]string{corev1.LabelHostname: name, contract.NodePoolLabel: b.Pool},
				},
			}
			if err := c.Create(ctx, n); err != nil && !apierrors.IsAlreadyExists(err) {
				return now, fmt.Errorf("make its Node: %w", err)
			}
			said = fmt.Sprintf("its Node is there again, in pool %s, and its hub gets new certificates; systemctl restart "+
				"kubelet on the machine puts its other labels back", b.Pool)
		}
		return "", nil
	})
	return said, err
}
