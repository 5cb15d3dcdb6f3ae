package digest

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// Bounds of a digest on the wire.
const (
	MaxText  = 192 + 1 + MaxEdges // of what a hub of this version writes: what one without edges reads of it, twice 192
	maxRead  = 2 * MaxText        // a later one may append
	maxCount = 1<<48 - 1          // bytes: sums over all nodes that a cluster can have are numbers, too
	maxAge   = 100 * 365 * 86_400 // seconds
)

// format is the first word. What a later format appends is not read; one that changes what is here has another number.
const format = "1"

// Unknown is the age of relays of which one was never filled.
const Unknown = -1 * time.Second

// Role is what a hub is in its pool.
type Role string

// The roles.
const (
	Leader   Role = "Leader"
	Follower Role = "Follower"
	Pending  Role = "Pending"
)

var letters = map[Role]string{Leader: "L", Follower: "F", Pending: "P"}

// Digest is what a hub tells of itself. Bytes are since Started.
type Digest struct {
	Version string
	Role    Role
	Age     time.Duration // of the oldest relay, 0 if there is none; Unknown: one was never filled
	Started time.Time
	Down    int64 // bytes from the cloud, all that the hub has asked there, TLS included
	Up      int64 // bytes to it
	Feed    int64 // of both, those of class pool: what this hub fetched for relays
	Served  int64 // bytes that clients of this node got from relays
	// Cause is why it is Pending, in one word; "": it is not, or does not say.
	Cause  string
	Images Images
	Edges  Edges // those that it found to fail
}

// Images are bytes of images on a node since its hub was started. They are not in those of the hub: containerd pulls.
type Images struct {
	Pulled int64 // from registries, over the uplink
	Saved  int64 // read from members of the pool instead
	Served int64 // to members
}

// Text is what Parse reads, MaxText bytes at most.
func (d Digest) Text() string {
	age := int64(-1)
	if d.Age >= 0 {
		age = int64(d.Age / time.Second)
	}
	words := []string{format, word(d.Version), cmp.Or(letters[d.Role], letters[Pending])}
	for _, n := range []int64{min(age, maxAge), max(d.Started.Unix(), 0), d.Down, d.Up, d.Feed, d.Served} {
		words = append(words, strconv.FormatInt(min(n, maxCount), 10))
	}
	if d.Cause != "" || d.Images != (Images{}) || d.Edges != "" {
		words = append(words, cause(d.Cause))
	}
	if d.Images != (Images{}) || d.Edges != "" {
		for _, n := range []int64{d.Images.Pulled, d.Images.Saved, d.Images.Served} {
			words = append(words, strconv.FormatInt(min(n, maxCount), 10))
		}
	}
	if d.Edges != "" {
		words = append(words, string(d.Edges))
	}
	return strings.Join(words, " ")
}

// Parse reads what a hub tells. Root of that node wrote it.
func Parse(text string) (d Digest, err error) {
	if len(text) > maxRead {
		return d, fmt.Errorf("%s: %d bytes, want %d at most", contract.DigestAnnotation, len(text), maxRead)
	}
	words := strings.Split(text, " ")
	if words[0] != format {
		return d, fmt.Errorf("%s: format %.8q, want %s", contract.DigestAnnotation, words[0], format)
	}
	if len(words) < 9 {
		return d, fmt.Errorf("%s: %d words, want 9", contract.DigestAnnotation, len(words))
	}
	if d.Version = words[1]; d.Version != word(d.Version) {
		return Digest{}, fmt.Errorf("%s: version %.40q, want %d letters, digits and .+-_ at most", contract.DigestAnnotation,
			words[1], maxVersion)
	}
	for role, letter := range letters {
		if words[2] == letter {
			d.Role = role
		}
	}
	if d.Role == "" {
		return Digest{}, fmt.Errorf("%s: role %.8q, want L, F or P", contract.DigestAnnotation, words[2])
	}
	var age, started int64
	numbers := []number{
		{3, "age", &age, -1, maxAge}, {4, "start", &started, 0, math.MaxUint32}, {5, "down", &d.Down, 0, maxCount},
		{6, "up", &d.Up, 0, maxCount}, {7, "feed", &d.Feed, 0, maxCount}, {8, "served", &d.Served, 0, maxCount},
	}
	if len(words) > 12 {
		numbers = append(numbers, number{10, "images pulled", &d.Images.Pulled, 0, maxCount},
			number{11, "images saved", &d.Images.Saved, 0, maxCount},
			number{12, "images served", &d.Images.Served, 0, maxCount})
	}
	for _, n := range numbers {
		if err := n.parse(words[n.at]); err != nil {
			return Digest{}, err
		}
	}
	if len(words) > 9 && words[9] != none {
		if d.Cause = words[9]; d.Cause != cause(d.Cause) {
			return Digest{}, fmt.Errorf("%s: cause %.40q, want %d letters, digits and .+-_ at most", contract.DigestAnnotation,
				words[9], maxCause)
		}
	}
	if len(words) > 13 {
		_, _, used, err := edges(words[13:])
		if err != nil {
			return Digest{}, err
		}
		d.Edges = Edges(strings.Join(words[13:13+used], " "))
	}
	d.Age, d.Started = time.Duration(age)*time.Second, time.Unix(started, 0).UTC()
	return d, nil
}

// number is a word that is one.
type number struct {
	at          int
	name        string
	into        *int64
	least, most int64
}

func (n number) parse(word string) (err error) {
	if *n.into, err = strconv.ParseInt(word, 10, 64); err != nil || *n.into < n.least || *n.into > n.most {
		return fmt.Errorf("%s: %s %.24q, want %d to %d", contract.DigestAnnotation, n.name, word, n.least, n.most)
	}
	return nil
}
