package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var quiet = slog.New(slog.DiscardHandler)

func open(t testing.TB, d disk.Disk) *Queue {
	t.Helper()
	q, err := Open(Config{Disk: d, Logger: quiet, PushedPerSecond: 1e9})
	check(t, err)
	return q
}

func flash(seed uint64) *testkit.Flash { return testkit.NewFlash(rand.New(rand.NewPCG(seed, 25))) }

func node() Target         { return Target{Kind: NodeStatus, Name: "n"} }
func pod(i int) Target     { return Target{PodStatus, "ns", fmt.Sprint("p", i), fmt.Sprint("uid-p", i)} }
func eventOf(i int) Target { return Target{Kind: Event, Namespace: "ns", Name: fmt.Sprint("e", i)} }
func status(v string) []byte {
	return fmt.Appendf(nil, `{"message":%q,"a":%q,"b":%q,"c":%q,"d":%q}`, v, v, v, v, v)
}

// object is one in the cloud.
type object struct {
	UID     string
	Version int
	Status  map[string]any
	Count   int
	Extra   string // that a newer cloud knows
	Written []string
}

func (o *object) json() []byte {
	b, _ := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.UID, "resourceVersion": strconv.Itoa(o.Version)}, "status": o.Status,
		"count": o.Count, "extra": o.Extra,
	})
	return b
}

// cloud is a model of the real one. It notes every value that our writes gave an object's field message.
type cloud struct {
	t       testing.TB
	objects map[Target]*object
	creates map[Target]int
	pushed  []string
	version int
	before  func() error // called before each call
	after   func() error // called after each that wrote: the answer is lost
	refuse  map[Target]bool
}

func newCloud(t testing.TB) *cloud {
	none := func() error { return nil }
	return &cloud{
		t: t, objects: map[Target]*object{}, creates: map[Target]int{}, refuse: map[Target]bool{}, before: none, after: none,
	}
}

func (c *cloud) add(t Target) *object {
	c.version++
	o := &object{
		UID: t.UID, Version: c.version, Status: map[string]any{
			"message": "", "a": "", "b": "", "c": "", "d": "", "theirs": "",
		}, Extra: "kept",
	}
	if o.UID == "" {
		o.UID = "uid-" + t.Name
	}
	c.objects[c.name(t)] = o
	return o
}

// name is what the cloud knows an object by.
func (c *cloud) name(t Target) Target { t.UID = ""; return t }

// touch lets somebody else change an object.
func (c *cloud) touch(t Target, field, value string) {
	if o := c.objects[c.name(t)]; o != nil {
		c.version++
		o.Version = c.version
		o.Status[field] = value
	}
}

func (c *cloud) Get(_ context.Context, t Target) ([]byte, error) {
	if err := c.before(); err != nil {
		return nil, err
	}
	if o := c.objects[c.name(t)]; o != nil {
		return o.json(), nil
	}
	return nil, nil
}

func (c *cloud) Update(_ context.Context, t Target, body []byte) error {
	if err := c.before(); err != nil {
		return err
	}
	if c.refuse[t] {
		return ErrRefused
	}
	var in struct {
		Metadata struct{ UID, ResourceVersion string }
		Status   map[string]any
		Count    int
		Extra    string
	}
	check(c.t, json.Unmarshal(body, &in))
	o := c.objects[c.name(t)]
	switch {
	case o == nil:
		return fmt.Errorf("%w: not found", ErrConflict)
	case in.Metadata.UID != o.UID || in.Metadata.ResourceVersion != strconv.Itoa(o.Version):
		return ErrConflict
	case in.Extra != o.Extra:
		c.t.Fatalf("%v: the field extra is %q", t, in.Extra)
	}
	c.version++
	o.Version = c.version
	if m, _ := in.Status["message"].(string); m != o.Status["message"] && m[0] == 'w' {
		o.Written = append(o.Written, m)
		c.pushed = append(c.pushed, m)
	}
	o.Status, o.Count = in.Status, max(o.Count, in.Count)
	return c.after()
}

func (c *cloud) Create(_ context.Context, t Target, body []byte) error {
	if err := c.before(); err != nil {
		return err
	}
	if c.objects[c.name(t)] != nil {
		return ErrExists
	}
	var in struct{ Count int }
	check(c.t, json.Unmarshal(body, &in))
	o := c.add(t)
	o.Count, o.Extra = in.Count, ""
	c.creates[t]++
	c.pushed = append(c.pushed, t.Name)
	return c.after()
}

var errLink = errors.New("the link is cut")

func fakeClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
}
