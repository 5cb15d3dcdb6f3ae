package role

import (
	"testing"
	"time"
)

// TestDoubtedPool: a pool's cache that the cloud contradicts is left within the spread, without grace, however much it
// moves, and used again when it is not doubted any more. While the cloud is away it is all there is.
func TestDoubtedPool(t *testing.T) {
	m, err := New(Config{Identity: "a_1", Grace: 10 * time.Second, Spread: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	in := Input{
		Coordinator: true, Cloud: true, Have: true, Election: &Record{
			Exists: true, Holder: "liar_1", Duration: 15 * time.Second, UID: "u", Version: "1",
		},
	}
	for _, c := range []struct {
		until          time.Duration
		doubted, cloud bool
		want           Source
	}{
		{5 * time.Second, false, true, Coordinator},
		{16 * time.Second, true, true, Cloud}, // what is forged gets no grace
		{31 * time.Second, true, false, Coordinator},
		{60 * time.Second, true, true, Cloud},
		{70 * time.Second, false, true, Coordinator},
	} {
		in.Doubted, in.Cloud = c.doubted, c.cloud
		var out Output
		for ; in.Now <= c.until; in.Now += time.Second {
			n++
			in.Reached = uint64(n)
			in.Sync = &Record{
				Exists: true, Holder: "liar_1", Duration: 30 * time.Second, UID: "u", Version: "2",
				RenewTime: time.Unix(int64(n), 0),
			}
			out = m.Step(in)
			in.Election = nil
		}
		if out.Snapshot.Source != c.want {
			t.Errorf("at %v, doubted %v, cloud %v: %v, want %v", c.until, c.doubted, c.cloud, out.Snapshot.Source, c.want)
		}
	}
}
