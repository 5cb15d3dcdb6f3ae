package revocation

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// MaxNames are in the ConfigMap of the policy weir-revoked, of all pools.
const MaxNames = 4096

// bar lets nodes that were deleted not register themselves again. A value begins with the time, so that those that come first end first.
func bar(ctx context.Context, r *Config, pool string, left []gone) error {
	left = slices.DeleteFunc(slices.Clone(left), func(g gone) bool { return !g.deleted })
	if len(left) == 0 {
		return nil
	}
	kept, err := notes(ctx, r.Reader, contract.ManagerNamespace, contract.RevokedNodes)
	if err != nil {
		return err
	}
	names, now := maps.Clone(kept.Data), r.Clock.Now().UTC()
	if names == nil {
		names = map[string]string{}
	}
	oldest := now.Add(-pki.Must(pki.Kubelet).Life.Most).Format(time.RFC3339)
	maps.DeleteFunc(names, func(_, v string) bool { return v < oldest })
	for _, g := range left {
		if strings.HasSuffix(names[g.name], " "+pool+" "+g.UID) { // a ghost is looked at each time
			continue
		}
		names[g.name] = strings.Join([]string{now.Format(time.RFC3339), pool, g.UID}, " ")
	}
	if over := len(names) - MaxNames; over > 0 {
		byTime := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(strings.Compare(names[a], names[b]), strings.Compare(a, b)) })
		for _, name := range byTime[:over] {
			r.Log.Error("the list of deleted nodes is full: one of them may register itself again", "node", name, "deleted", names[name])
			r.Metrics.dropped.Inc()
			delete(names, name)
		}
	}
	return write(ctx, r.Client, kept, names)
}
