package digest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/contract"
)

// Bounds of what a hub tells of reads, on the wire.
const (
	MaxReads     = 384          // bytes of what a hub of this version writes
	maxReadsRead = 2 * MaxReads // a later one may append
	MaxPassed    = 8            // resources
	MaxUnread    = 8
	MaxResource  = 120 // characters of the name of one
)

// readsFormat is the first word. A word that begins with a + is of a later version, and is not read.
const readsFormat = "1"

// Reads is what clients of a node read of the whole cluster: lists and watches of all namespaces. Bytes are those of
// the last day, or since the hub was started. Resources are named as in "endpointslices.v1.discovery.k8s.io".
type Reads struct {
	// Passed are resources that the pool does not share, and whose reads the cloud answered, the most bytes first.
	Passed []Passed
	Rest   int64 // bytes of all others
	// Unread are resources that the pool shares, and that no client of the node has read for a day, sorted.
	Unread []string
}

// Passed is what the cloud answered of one resource.
type Passed struct {
	Resource string
	Bytes    int64 // compressed, as they came
}

// Order puts the most bytes first.
func (r *Reads) Order() {
	slices.SortFunc(r.Passed, func(a, b Passed) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Resource, b.Resource))
	})
	slices.Sort(r.Unread)
}

// Text is what ParseReads reads, MaxReads bytes at most. What has no place counts as the rest, and what has no place of
// what nobody reads is not told. r is in order.
func (r Reads) Text() string {
	var words []string
	rest, room := min(max(r.Rest, 0), maxCount), MaxReads-len(readsFormat)-1-len(strconv.Itoa(maxCount))
	for _, p := range r.Passed {
		word := p.Resource + "=" + strconv.FormatInt(min(max(p.Bytes, 0), maxCount), 10)
		if len(words) == MaxPassed || len(p.Resource) > MaxResource || len(word) >= room {
			rest = min(rest+min(max(p.Bytes, 0), maxCount), maxCount)
			continue
		}
		words, room = append(words, word), room-len(word)-1
	}
	unread := 0
	for _, name := range r.Unread {
		if word := "!" + name; unread < MaxUnread && len(name) <= MaxResource && len(word) < room {
			words, room, unread = append(words, word), room-len(word)-1, unread+1
		}
	}
	return strings.Join(append([]string{readsFormat, strconv.FormatInt(rest, 10)}, words...), " ")
}

// ParseReads reads what a hub tells of reads. Root of that node wrote it.
func ParseReads(text string) (Reads, error) {
	r, err := parseReads(text)
	if err != nil {
		return Reads{}, fmt.Errorf("%s: %w", contract.ReadsAnnotation, err)
	}
	return r, nil
}

func parseReads(text string) (r Reads, err error) {
	if len(text) > maxReadsRead {
		return r, fmt.Errorf("%d bytes, want %d at most", len(text), maxReadsRead)
	}
	words := strings.Split(text, " ")
	if words[0] != readsFormat || len(words) < 2 {
		return r, fmt.Errorf("format %.8q of %d words, want %s", words[0], len(words), readsFormat)
	}
	if r.Rest, err = count(words[1]); err != nil {
		return r, err
	}
	seen := map[string]bool{}
	for _, word := range words[2:] {
		name, n, passed := strings.Cut(word, "=")
		name, unread := strings.CutPrefix(name, "!")
		switch {
		case strings.HasPrefix(word, "+"):
			continue
		case passed == unread:
			return r, fmt.Errorf("%.40q, want resource.version.group=bytes or !resource.version.group", word)
		case seen[name]:
			return r, fmt.Errorf("%.40q is there twice", name)
		}
		if _, _, _, err := Split(name); err != nil {
			return r, err
		}
		seen[name] = true
		if unread {
			r.Unread = append(r.Unread, name)
			continue
		}
		p := Passed{Resource: name}
		if p.Bytes, err = count(n); err != nil {
			return r, err
		}
		r.Passed = append(r.Passed, p)
	}
	if len(r.Passed) > MaxPassed || len(r.Unread) > MaxUnread {
		return r, fmt.Errorf("%d and %d resources, want %d and %d at most", len(r.Passed), len(r.Unread), MaxPassed,
			MaxUnread)
	}
	r.Order()
	return r, nil
}

// count is a number of bytes.
func count(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 || n > maxCount {
		return 0, fmt.Errorf("%.24q bytes, want 0 to %d", word, int64(maxCount))
	}
	return n, nil
}

// Split reads the name of a resource.
func Split(name string) (resource, version, group string, err error) {
	parts := strings.SplitN(name, ".", 3)
	if len(name) > MaxResource || len(parts) != 3 || len(validation.IsDNS1035Label(parts[0])) > 0 ||
		len(validation.IsDNS1035Label(parts[1])) > 0 || parts[2] != "" && len(validation.IsDNS1123Subdomain(parts[2])) > 0 {
		return "", "", "", fmt.Errorf("resource %.40q, want resource.version.group of %d characters at most", name,
			MaxResource)
	}
	return parts[0], parts[1], parts[2], nil
}

// Private reports whether a resource is of those that nobody is advised to share: each node of a pool may read all that
// the pool shares. They are counted under no name of their own. All that a pool cannot share is among them.
func Private(resource, group string) bool {
	switch {
	case group == "" && (resource == "configmaps" || resource == "events"):
	case group == "coordination.k8s.io", group == "authentication.k8s.io", group == "authorization.k8s.io":
	case group == "events.k8s.io": // many, short of life, and read where nodes are not
	case strings.Contains(resource, "secret"), strings.Contains(resource, "token"),
		strings.Contains(resource, "password"), strings.Contains(resource, "credential"):
	default:
		return false
	}
	return true
}
