package exchange

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// at is a desk in fake time.
type at struct {
	*testing.T
	*Images
	clock *testingclock.FakePassiveClock
}

func newAt(t *testing.T) *at {
	c := testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	return &at{T: t, Images: &Images{Clock: c}, clock: c}
}

func (x *at) wait(d time.Duration) { x.clock.SetTime(x.clock.Now().Add(d)) }

// say has a node say something. Its address has its name's last letter as its last number.
func (x *at) say(node string, a ImagesAsk) ImagesAnswer {
	x.Helper()
	if a.Address == "" && node[0] != '-' {
		a.Address = fmt.Sprintf("10.0.0.%d:10269", node[len(node)-1]-'a'+1)
	}
	out, err := x.Exchange(node, a)
	if err != nil {
		x.Fatal(err)
	}
	return out
}

// wants is what a node is told: pull, or names, with + if they are pulling.
func (x *at) wants(node string, d Digest, failed ...ReadReport) string {
	x.Helper()
	out := x.say(node, ImagesAsk{Want: &d, Failed: failed})
	if out.Pull {
		return "pull"
	}
	names := []string{}
	for _, h := range out.From {
		if h.Growing {
			h.Node += "+"
		}
		names = append(names, h.Node)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (x *at) want(why, got, want string) {
	x.Helper()
	if got != want {
		x.Errorf("%s: %q, want %q", why, got, want)
	}
}

func (x *at) pulls(node string, d Digest, bytes int64) {
	x.Helper()
	x.say(node, ImagesAsk{Pulls: []PullProgress{{d, bytes}}})
}

// TestPull: the first pulls, others read from it, and from all that have it in the end.
func TestPull(t *testing.T) {
	x, d := newAt(t), Digest{1}
	x.want("the first", x.wants("a", d), "pull")
	x.want("the same again", x.wants("a", d), "pull")
	x.want("another", x.wants("b", d), "a+")
	x.pulls("a", d, 100)
	x.wait(PullStall - time.Second)
	x.want("within a stall", x.wants("c", d), "a+")
	x.say("a", ImagesAsk{Holds: []Digest{d}})
	x.say("b", ImagesAsk{Holds: []Digest{d}})
	x.want("complete", x.wants("c", d), "a b")
	x.say("a", ImagesAsk{Gone: []Digest{d}})
	x.want("gone at one", x.wants("c", d), "b")
	x.want("who has it asks", x.wants("b", d), "pull")
	x.want("another digest", x.wants("c", Digest{2}), "pull")
}

// TestStall: a pull without a new byte ends, and the next node pulls. One that goes on is believed again.
func TestStall(t *testing.T) {
	x, d := newAt(t), Digest{1}
	x.wants("a", d)
	x.pulls("a", d, 100)
	x.wait(PullStall - time.Second)
	x.want("before", x.wants("b", d), "a+")
	x.wait(time.Second)
	x.want("nothing is heard", x.wants("b", d), "pull")
	x.wait(PullStall)
	x.pulls("a", d, 110)
	for since := time.Duration(0); since < PullSlow; since += 5 * time.Second {
		x.want(fmt.Sprint("nothing new for ", since), x.wants("c", d), "a+")
		x.wait(5 * time.Second)
		x.pulls("a", d, 110)
	}
	x.want("nothing new for too long", x.wants("b", d), "pull")
	x.say("b", ImagesAsk{Gone: []Digest{d}})
	x.want("it says that it ended", x.wants("c", d), "pull")
	x.pulls("b", d, 150)
	x.want("a third", x.wants("c", d), "b+")
	x.pulls("a", d, 200)
	x.want("the first is further, and was left", x.wants("c", d), "b+")
	x.wait(barFor)
	x.pulls("b", d, 160)
	x.pulls("a", d, 210)
	x.want("and is believed again", x.wants("c", d), "a+")
}

// TestLost: a node that pulled, and asks again while another one pulls, reads from that. Never do two read from each
// other.
func TestLost(t *testing.T) {
	x, d := newAt(t), Digest{1}
	x.wants("a", d)
	x.pulls("a", d, 100)
	x.want("b cannot read a", x.wants("b", d, ReadReport{Digest: d, Node: "a"}), "pull")
	x.want("a begins again", x.wants("a", d), "b+")
	x.want("and pulls no more", x.wants("c", d), "b+")
	x.wait(barFor - time.Second)
	x.pulls("b", d, 10)
	x.want("b goes on", x.wants("b", d), "pull")
	x.want("all others", x.wants("c", d), "b+")
}

// TestDud: a digest of which no byte ever came is waited for once, and not by each node after the other.
func TestDud(t *testing.T) {
	x, d := newAt(t), Digest{1}
	x.wants("a", d)
	x.want("at first", x.wants("b", d), "a+")
	x.wait(PullStall)
	x.want("b waited", x.wants("b", d, ReadReport{Digest: d, Node: "a"}), "pull")
	x.want("c need not wait", x.wants("c", d), "pull")
	x.say("c", ImagesAsk{Gone: []Digest{d}})
	x.pulls("b", d, 1)
	x.want("there is a byte", x.wants("e", d), "b+")
}

// TestFailed: a node that cannot read from another one is led elsewhere, and the pull of that one goes on for others.
// A liar costs its own pull.
func TestFailed(t *testing.T) {
	x, d := newAt(t), Digest{1}
	x.wants("a", d)
	x.pulls("a", d, 10)
	x.want("b could not", x.wants("b", d, ReadReport{Digest: d, Node: "a"}), "pull")
	x.want("c can", x.wants("c", d), "a+")
	x.want("c could not either", x.wants("c", d, ReadReport{Digest: d, Node: "a"}), "b+")
	x.wait(barFor)
	x.pulls("a", d, 20)
	x.want("later", x.wants("b", d), "a+")
	x.want("about itself", x.wants("a", d, ReadReport{Digest: d, Node: "a"}), "pull")
	x.want("about a stranger", x.wants("c", d, ReadReport{Digest: d, Node: "nobody"}), "a+")
}

// TestWrong: wrong bytes bar a member for the one that says so, and for all when two do.
func TestWrong(t *testing.T) {
	x, d := newAt(t), Digest{1}
	for _, node := range []string{"a", "b"} {
		x.say(node, ImagesAsk{Holds: []Digest{d}})
	}
	wrong := ReadReport{Digest: d, Node: "a", Wrong: true}
	x.want("the one", x.wants("c", d, wrong), "b")
	x.want("twice is no more", x.wants("c", d, wrong), "b")
	x.want("another", x.wants("e", d), "a b")
	x.want("the second", x.wants("f", d, wrong), "b")
	x.want("all others", x.wants("e", d), "b")
	x.wait(wrongFor)
	for _, node := range []string{"a", "b"} {
		x.say(node, ImagesAsk{Whole: true, Holds: []Digest{d}})
	}
	x.want("an hour later", x.wants("e", d), "a b")
}

// TestSilence: a member that says nothing is left, with all that it has.
func TestSilence(t *testing.T) {
	x, d := newAt(t), Digest{1}
	x.say("a", ImagesAsk{Whole: true, Holds: []Digest{d}})
	x.wait(ImagesSilence)
	x.want("at the end", x.wants("b", d), "a")
	x.wait(2 * time.Second)
	x.want("after it", x.wants("c", d), "pull")
	if out := x.say("a", ImagesAsk{Desk: x.name}); out.Known {
		t.Error("the desk says that it knows a member that it has left")
	}
}

// TestRestart: hubs see that a desk knows nothing, and tell it.
func TestRestart(t *testing.T) {
	x, d := newAt(t), Digest{1}
	first := x.say("a", ImagesAsk{Whole: true, Holds: []Digest{d}})
	if !first.Known || !x.say("a", ImagesAsk{Desk: first.Desk}).Known {
		t.Error("the desk does not know what it was told")
	}
	x.Reset()
	second := x.say("a", ImagesAsk{Desk: first.Desk, Holds: []Digest{{2}}})
	if second.Known || second.Desk == first.Desk {
		t.Errorf("after a restart: %+v", second)
	}
	x.say("a", ImagesAsk{Desk: first.Desk, Whole: true, Holds: []Digest{d}})
	x.want("told again", x.wants("b", d), "a")
	x.want("whole is all", x.wants("b", Digest{2}), "pull")
}

// TestUnreachable: a member that nobody can reach pulls, and is read by nobody.
func TestUnreachable(t *testing.T) {
	x, d := newAt(t), Digest{1}
	x.want("it pulls", x.wants("-a", d), "pull")
	x.want("so does another", x.wants("b", d), "pull")
	x.want("and is read", x.wants("c", d), "b+")
}

// TestBeginsAgain: what broke off of a pull before it began again keeps nobody from reading it, whoever comes first.
func TestBeginsAgain(t *testing.T) {
	for name, first := range map[string]bool{"the puller is back first": true, "its reader reports first": false} {
		x, d := newAt(t), Digest{1}
		x.want(name, x.wants("a", d), "pull")
		x.want(name, x.wants("b", d), "a+")
		x.wait(5 * time.Second)
		broke := func(age time.Duration) { x.say("b", ImagesAsk{Failed: []ReadReport{{Digest: d, Node: "a", Age: age}}}) }
		if !first {
			broke(4 * time.Second)
		}
		x.want(name+": a pulls again", x.wants("a", d), "pull")
		x.wait(time.Second)
		if first {
			broke(4 * time.Second)
		}
		x.want(name+": b reads it", x.wants("b", d), "a+")
		broke(time.Second / 2)
		x.want(name+": it broke off since", x.wants("b", d), "pull")
	}
}

// TestImagesBounds: whatever members say, the desk keeps so much and no more.
func TestImagesBounds(t *testing.T) {
	x := newAt(t)
	digest := func(i int) (d Digest) {
		d[0], d[1], d[2] = byte(i), byte(i>>8), byte(i>>16)
		return d
	}
	for i := range 7 {
		var all []Digest
		for j := range MaxHolds {
			all = append(all, digest(i*MaxHolds+j))
		}
		x.say(string(rune('a'+i)), ImagesAsk{Whole: true, Holds: all})
	}
	for i := range maxMembers + 10 {
		_ = x.say(fmt.Sprint("-", i), ImagesAsk{Want: &Digest{31: 1}, Tag: fmt.Sprintf("r/n:%d", i)})
	}
	for i := range MaxTags + 10 {
		_ = x.say("-0", ImagesAsk{Tag: fmt.Sprintf("r/n:x%d", i)})
	}
	for i := range 2 * maxWords / MaxTags {
		for j := range MaxTags + 10 {
			x.tags.say(fmt.Sprint("-", i), Resolution{Tag: fmt.Sprintf("r/n:%d", j)}, x.clock.Now())
		}
	}
	words := 0
	for _, all := range x.tags.of {
		words += len(all)
	}
	held := 0
	for _, c := range x.of {
		held += len(c.holders)
		if len(c.holders) > maxHolders || len(c.pulls) > maxHolders || len(c.bars) > maxBars {
			t.Errorf("%d holders, %d pulls, %d bars", len(c.holders), len(c.pulls), len(c.bars))
		}
	}
	count := 0
	for _, m := range x.members {
		count += m.holds
	}
	if len(x.of) > maxDigests || len(x.members) > maxMembers || count != held {
		t.Errorf("%d digests, %d members; members hold %d, and digests have %d holders", len(x.of), len(x.members), count,
			held)
	}
	if words > maxWords || words != x.tags.count || len(x.tags.asked) > maxQuestions {
		t.Errorf("%d words about tags, counted as %d, and %d questions", words, x.tags.count, len(x.tags.asked))
	}
}

// TestHandler: who asks is the caller, and what it says is bounded. An error names the field and what is allowed.
func TestHandler(t *testing.T) {
	x := newAt(t)
	h := x.Handler(func(req *http.Request) string { return req.Header.Get("Node") })
	for _, c := range []struct {
		method, node, body string
		status             int
		says               string
	}{
		{"POST", "a", `{"want":"` + strings.Repeat("ab", 32) + `"}`, 200, `"pull":true`},
		{"POST", "", `{}`, 403, "nobody else"},
		{"GET", "a", "", 405, "only POST"},
		{"POST", "a", `{"want":"sha256:x"}`, 400, "want 64 digits"},
		{"POST", "a", `{"want":"` + strings.Repeat("AB", 32) + `"}`, 400, "want 64 digits"},
		{"POST", "a", `{"address":"example.com:1"}`, 400, "want the IP address"},
		{"POST", "a", `{"address":"169.254.2.1:10268"}`, 400, "want the IP address"},
		{"POST", "a", `{"tag":"app"}`, 400, "want registry/name:tag"},
		{"POST", "a", `{"resolved":[{"tag":"r/n:t","digest":"` + strings.Repeat("ab", 32) + `","age":-1}]}`, 400, "age"},
		{"POST", "a", `{"pulls":[{"digest":"` + strings.Repeat("ab", 32) + `","bytes":-1}]}`, 400, "want 0 at least"},
		{
			"POST", "a", `{"failed":[` + strings.Repeat(`{"digest":"`+strings.Repeat("ab", 32)+`"},`, 16) + `{}]}`, 400,
			"failed: 17",
		},
		{"POST", "a", strings.Repeat(" ", maxImagesAsk) + `{}`, 400, "too large"},
		{"POST", "a", `{`, 400, "EOF"},
	} {
		req := httptest.NewRequest(c.method, "/weir/v1/images", strings.NewReader(c.body))
		req.Header.Set("Node", c.node)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %.60s by %q: %d %s, want %d %s", c.method, c.body, c.node, w.Code, w.Body, c.status, c.says)
		}
	}
}

// TestLargest: the largest question that is allowed passes.
func TestLargest(t *testing.T) {
	x := newAt(t)
	a := ImagesAsk{Whole: true, Address: "10.0.0.1:10269"}
	for i := range MaxHolds {
		a.Holds = append(a.Holds, Digest{byte(i), byte(i >> 8)})
	}
	for i := range MaxTags {
		a.Resolved = append(a.Resolved, Resolution{Tag: fmt.Sprintf("registry.example.com/some/%d:v1", i)})
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	x.Handler(func(*http.Request) string { return "a" }).ServeHTTP(w,
		httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(raw))))
	if w.Code != http.StatusOK {
		t.Errorf("%d bytes: %d %s", len(raw), w.Code, w.Body)
	}
}

func FuzzAsk(f *testing.F) {
	f.Add(`{"want":"` + strings.Repeat("ab", 32) + `","tag":"docker.io/library/app:v1","address":"10.0.0.1:1"}`)
	f.Add(`{"whole":true,"holds":["` + strings.Repeat("00", 32) + `"],"failed":[{"node":"a","wrong":true}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		x := newAt(t)
		var a ImagesAsk
		if json.Unmarshal([]byte(body), &a) != nil {
			return
		}
		for range 2 {
			for _, node := range []string{"a", "b"} {
				out, err := x.Exchange(node, a)
				if err == nil && a.Want != nil && !out.Pull && len(out.From) == 0 {
					t.Error("neither pull nor a holder")
				}
			}
			x.wait(PullStall)
		}
	})
}

func FuzzDigest(f *testing.F) {
	f.Add("sha256:" + strings.Repeat("ab", 32))
	f.Add("sha256:../../../etc/passwd")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDigest(s)
		if err == nil && d.String() != s {
			t.Errorf("%q is read as %v", s, d)
		}
	})
}
