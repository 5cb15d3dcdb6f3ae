package store

import (
	"bytes"
	"testing"
)

// TestStalePage: the page that makes a transaction count is on the disk, and one page that it refers to is still what
// it was before. Such a page is whole: no sum over a row can tell. What is served is the list of the transaction, the
// one before, or nothing.
func TestStalePage(t *testing.T) {
	h := liveOf(t, 60, 8)
	outcome := map[string]int{}
	for i := 1; i < len(h.files); i++ {
		before, after := h.files[i-1], h.files[i]
		before = append(bytes.Clone(before), make([]byte, max(0, len(after)-len(before)))...)
		for _, p := range changed(before, after) {
			if p <= 1 {
				continue
			}
			file := bytes.Clone(after)
			copy(file[p*pageSize:(p+1)*pageSize], before[p*pageSize:])
			switch got, _ := serve(t, file); got {
			case h.lists[i]:
				outcome["the list"]++
			case h.lists[i-1]:
				outcome["the one before"]++
			case "unknown":
				outcome["unknown"]++
			default:
				outcome["another"]++
				t.Errorf("transaction %d, page %d is that of before:\n%.100s\nwant %.100s\nor   %.100s", i, p, got, h.lists[i],
					h.lists[i-1])
			}
		}
	}
	t.Log(outcome)
	if outcome["the one before"] < 20 {
		t.Error("the test does not test much")
	}
}
