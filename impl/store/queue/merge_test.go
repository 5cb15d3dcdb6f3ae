package queue

import (
	"encoding/json"
	"testing"
)

// TestMerge: what changed from base to ours is in the result, and of theirs everything else.
func TestMerge(t *testing.T) {
	for _, c := range []struct{ what, base, ours, theirs, want string }{
		{"nothing changed", `{"a":1}`, `{"a":1}`, `{"a":2,"b":3}`, `{"a":2,"b":3}`},
		{"both changed different things", `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":2}`, `{"a":2,"b":2}`},
		{"both changed the same thing", `{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":2}`},
		{"ours added and removed", `{"a":1}`, `{"b":1}`, `{"a":1,"c":1}`, `{"b":1,"c":1}`},
		{"theirs removed what is unchanged", `{"a":1,"b":1}`, `{"a":1,"b":2}`, `{"b":1}`, `{"b":2}`},
		{"no base: ours has a word on what it has", ``, `{"a":2}`, `{"a":1,"b":1}`, `{"a":2,"b":1}`},
		{"no status there", `{"a":1}`, `{"a":2}`, ``, `{"a":2}`},
		{"numbers keep their digits", `{"a":1}`, `{"a":12345678901234567890}`, `{"a":1}`, `{"a":12345678901234567890}`},
		{
			"conditions by type",
			`{"conditions":[{"type":"Ready","status":"True","at":"1"},{"type":"Disk","status":"False"}]}`,
			`{"conditions":[{"type":"Ready","status":"False","at":"2"},{"type":"Disk","status":"False"},{"type":"New",` +
				`"status":"x"}]}`,
			`{"conditions":[{"type":"Cloud","status":"y"},{"type":"Ready","status":"Unknown","at":"1"},{"type":"Disk",` +
				`"status":"True"}]}`,
			`{"conditions":[{"type":"Cloud","status":"y"},{"type":"Ready","status":"False","at":"2"},{"type":"Disk",` +
				`"status":"True"},{"type":"New","status":"x"}]}`,
		},
		{
			"a condition is one value",
			`{"c":[{"type":"Gate","status":"True","at":"1"}]}`, `{"c":[{"type":"Gate","status":"True","at":"3"}]}`,
			`{"c":[{"type":"Gate","status":"False","at":"2","reason":"x"}]}`, `{"c":[{"type":"Gate","status":"True","at":"3"}]}`,
		},
		{
			"the cloud says for a kubelet that it did not hear what the kubelet does not",
			`{"a":1,"c":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"},` +
				`{"type":"Cloud","status":"y"}]}`,
			`{"a":2,"c":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"},` +
				`{"type":"Cloud","status":"y"}]}`,
			`{"a":1,"c":[{"type":"Ready","status":"False"},{"type":"DiskPressure","status":"Unknown","reason":"x"},` +
				`{"type":"Cloud","status":"n"}]}`,
			`{"a":2,"c":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"},` +
				`{"type":"Cloud","status":"n"}]}`,
		},
		{
			"containers by name", `{"c":[{"name":"a","n":0}]}`, `{"c":[{"name":"a","n":1}]}`,
			`{"c":[{"name":"b","n":5},{"name":"a","n":0,"x":1}]}`,
			`{"c":[{"name":"b","n":5},{"name":"a","n":1,"x":1}]}`,
		},
		{
			"two addresses of one type are one value", `{"a":[{"type":"IP","v":"1"},{"type":"IP","v":"2"}]}`,
			`{"a":[{"type":"IP","v":"3"},{"type":"IP","v":"2"}]}`,
			`{"a":[{"type":"IP","v":"1"},{"type":"IP","v":"9"}]}`, `{"a":[{"type":"IP","v":"3"},{"type":"IP","v":"2"}]}`,
		},
		{
			"a removed condition stays removed", `{"c":[{"type":"A"},{"type":"B"}]}`, `{"c":[{"type":"A"}]}`,
			`{"c":[{"type":"B"},{"type":"C"}]}`, `{"c":[{"type":"C"}]}`,
		},
		{"another kind of value", `{"a":1}`, `{"a":{"b":1}}`, `{"a":[1]}`, `{"a":{"b":1}}`},
	} {
		base, ours, theirs, want := value(t, c.base), value(t, c.ours), value(t, c.theirs), value(t, c.want)
		got := merge(base, ours, theirs)
		if !equal(got, want) {
			b, _ := json.Marshal(got)
			t.Errorf("%s: %s, want %s", c.what, b, c.want)
		}
		if again := merge(base, ours, got); !equal(again, got) {
			t.Errorf("%s: a second time it does something", c.what)
		}
	}
}

func value(t testing.TB, s string) any {
	t.Helper()
	v, err := decodeValue([]byte(s))
	check(t, err)
	return v
}

// TestPlan: what is done with an entry, in view of what the cloud has.
func TestPlan(t *testing.T) {
	entry := Entry{Target: pod(1), Base: status("a"), Ours: status("b")}
	sent := entry
	sent.Sent, sent.SentAt, sent.Ours = status("b"), "5", status("b")
	more := sent
	more.Ours = status("c")
	event := Entry{Target: eventOf(1), Ours: []byte(`{"metadata":{"name":"e1"},"count":3,"message":"new"}`)}
	cloud := func(uid, version, status string) string {
		return `{"metadata":{"uid":"` + uid + `","resourceVersion":"` + version +
			`","new":1},"spec":{"x":12345678901234567890},"status":` + status + `}`
	}
	overwritten := `{"message":"b","a":"b","b":"b","c":"x","d":"y"}`
	coincidence := `{"message":"a","a":"a","b":"a","c":"b","d":"b"}`
	for _, c := range []struct {
		what  string
		entry Entry
		cloud string
		want  step
		body  string
	}{
		{
			"as before", entry, cloud("uid-p1", "5", string(status("a"))), stepUpdate, cloud("uid-p1", "5", string(status("b"))),
		},
		{"has it", entry, cloud("uid-p1", "5", string(status("b"))), stepDone, ""},
		{"deleted", entry, "", stepDrop, ""},
		{"another of its name", entry, cloud("other", "5", string(status("a"))), stepDrop, ""},
		{
			"sent, it did not arrive", sent, cloud("uid-p1", "5", string(status("a"))), stepUpdate,
			cloud("uid-p1", "5", string(status("b"))),
		},
		{"sent, it arrived, and others came later", sent, cloud("uid-p1", "9", overwritten), stepDone, ""},
		{
			"sent, others were faster and wrote some of the same", sent, cloud("uid-p1", "9", coincidence), stepUpdate,
			cloud("uid-p1", "9", string(status("b"))),
		},
		{
			"sent, it arrived, and there is more", more, cloud("uid-p1", "9", overwritten), stepUpdate,
			cloud("uid-p1", "9", string(status("c"))),
		},
		{"a new event", event, "", stepCreate, string(event.Ours)},
		{
			"an event with a higher count", event, `{"metadata":{"uid":"u","resourceVersion":"5"},"count":2,"message":"old"}`,
			stepUpdate, `{"metadata":{"uid":"u","resourceVersion":"5"},"count":3,"message":"new"}`,
		},
		{"an event that is there", event, `{"metadata":{"uid":"u"},"count":3}`, stepDone, ""},
	} {
		var object []byte
		if c.cloud != "" {
			object = []byte(c.cloud)
		}
		v, err := plan(&c.entry, object)
		if err != nil || v.step != c.want || c.body != "" && !equal(value(t, string(v.body)), value(t, c.body)) {
			t.Errorf("%s: step %d with %s (%v), want %d with %s", c.what, v.step, v.body, err, c.want, c.body)
		}
	}
	if _, err := plan(&entry, []byte("[]")); err == nil {
		t.Error("a list is no object")
	}
}

// TestOrder: the cloud sees the writes in order, less those that later ones replaced; a refusal stops nobody else.
func TestOrder(t *testing.T) {
	q, c := open(t, flash(1)), newCloud(t)
	for i := range 4 {
		c.add(pod(i))
	}
	c.refuse[pod(3)] = true
	for _, i := range []int{0, 1, 3, 0, 2, 1} {
		check(t, q.Put(Write{Target: pod(i), Base: status(""), Ours: status("w" + string(rune('a'+i)))}))
		check(t, q.Put(Write{Target: pod(i), Ours: status("w" + string(rune('A'+i)))}))
	}
	check(t, q.Drain(t.Context(), c))
	want := []string{"wA", "wC", "wB"}
	if len(c.pushed) != 3 || c.pushed[0] != want[0] || c.pushed[1] != want[1] || c.pushed[2] != want[2] || q.Len() != 0 {
		t.Errorf("%v, want %v; %d are left", c.pushed, want, q.Len())
	}
	s := q.Stats()
	if s.Pushed != 3 || s.Dropped != 1 || s.Entries != 0 {
		t.Errorf("%+v", s)
	}
}

// TestBadWrites: they are refused, and say why.
func TestBadWrites(t *testing.T) {
	q := open(t, flash(1))
	for _, w := range []Write{
		{Ours: []byte("{}")},
		{Target: Target{Kind: 9, Name: "x"}, Ours: []byte("{}")},
		{Target: Target{Kind: NodeStatus}, Ours: []byte("{}")},
		{Target: Target{Kind: PodStatus, Name: "x"}, Ours: []byte("{}")},
		{Target: node()},
		{Target: node(), Ours: []byte("{")},
		{Target: node(), Ours: []byte("{}"), Base: []byte("x")},
	} {
		if err := q.Put(w); err == nil {
			t.Errorf("%+v is taken", w)
		} else {
			t.Log(err)
		}
	}
	if q.Len() != 0 {
		t.Error("something is left")
	}
	if err := (Config{}).Validate(); err == nil {
		t.Error("no folder")
	}
	if err := (Config{Disk: flash(1), MaxEvents: -1}).Validate(); err == nil {
		t.Error("-1 events")
	}
}
