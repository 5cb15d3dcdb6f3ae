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

// Barred is a line of that ConfigMap: a Node that was deleted, or is about to be. The administrator of the cluster
// confirms that beforehand or later, by a line that does not say that it is unconfirmed; weir node revoke does.
type Barred struct {
	At          time.Time
	Pool, UID   string
	Unconfirmed bool
}

const unconfirmedWord = "unconfirmed"

// String begins with the time, so that the lines that come first end first.
func (b Barred) String() string {
	words := []string{b.At.UTC().Format(time.RFC3339), b.Pool, b.UID}
	if b.Unconfirmed {
		words = append(words, unconfirmedWord)
	}
	return strings.Join(words, " ")
}

// ParseBarred reads such a line; false: a person wrote it in another form, and the node is barred all the same.
func ParseBarred(line string) (b Barred, ok bool) {
	words := strings.Split(line, " ")
	if len(words) < 3 {
		return b, false
	}
	at, err := time.Parse(time.RFC3339, words[0])
	return Barred{At: at, Pool: words[1], UID: words[2], Unconfirmed: slices.Contains(words[3:], unconfirmedWord)},
		err == nil
}

// Unconfirmed are the names of nodes of a pool whose deletion nobody has confirmed, sorted.
func Unconfirmed(names map[string]string, pool string) (all []string) {
	for name, line := range names {
		if b, ok := ParseBarred(line); ok && b.Unconfirmed && b.Pool == pool {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// unconfirmed leaves out those whose Node somebody has made again.
func unconfirmed(names map[string]string, pool string, now map[string]member) []string {
	return slices.DeleteFunc(Unconfirmed(names, pool), func(name string) bool {
		b, _ := ParseBarred(names[name])
		m, there := now[name]
		return there && m.UID != b.UID
	})
}

// bar lets nodes that were deleted not register themselves again. asked says that their deletion has to be confirmed,
// if it is not. all are the lines that there are then.
func bar(ctx context.Context, r *Config, pool string, left []gone, asked bool) (all map[string]string, err error) {
	kept, err := notes(ctx, r.Reader, contract.ManagerNamespace, contract.RevokedNodes)
	if err != nil {
		return nil, err
	}
	left = slices.DeleteFunc(slices.Clone(left), func(g gone) bool { return !g.deleted })
	if len(left) == 0 {
		return kept.Data, nil
	}
	names, now := maps.Clone(kept.Data), r.Clock.Now().UTC()
	if names == nil {
		names = map[string]string{}
	}
	oldest := now.Add(-pki.Must(pki.Kubelet).Life.Most).Format(time.RFC3339)
	maps.DeleteFunc(names, func(_, v string) bool { return v < oldest })
	for _, g := range left {
		// it was confirmed before, or is a ghost, which is looked at each time.
		if b, ok := ParseBarred(names[g.name]); ok && b.Pool == pool && b.UID == g.UID {
			continue
		}
		names[g.name] = Barred{now, pool, g.UID, asked}.String()
	}
	if over := len(names) - MaxNames; over > 0 {
		byTime := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
			return cmp.Or(strings.Compare(names[a], names[b]), strings.Compare(a, b))
		})
		for _, name := range byTime[:over] {
			r.Log.Error("the list of deleted nodes is full: one of them may register itself again", "node", name,
				"deleted", names[name])
			r.Metrics.dropped.Inc()
			delete(names, name)
		}
	}
	return names, write(ctx, r.Client, kept, names)
}
