package process

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Headroom says how much garbage may pile up before the next collection.
type Headroom struct {
	// Min is the least, in bytes. Smaller saves memory in an idle process and costs collections. 0 means 8 MiB.
	Min uint64
	// Percent of the live heap, for processes that hold much. 0 means 25.
	Percent uint64
	// Scanned is the percentage of what a collection has to look at, for processes that hold little but have many
	// goroutines: there a collection is dear. 0 means that this counts for nothing.
	Scanned uint64
}

const (
	defaultMin     = 8 << 20
	defaultPercent = 25
	// The bounds of what is asked of the runtime, in percent: below the lower one it would collect without end; above
	// the upper one there is nothing to gain, the heap is tiny.
	minGOGC, maxGOGC = 10, 1000
)

// Keep adjusts the collector after each collection until ctx ends, and then puts back what was set before. An explicit
// GOGC=off is left alone.
func (h Headroom) Keep(ctx context.Context) error {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	if before < 0 {
		debug.SetGCPercent(before)
		<-ctx.Done()
		return nil
	}
	collected := make(chan struct{}, 1)
	for {
		debug.SetGCPercent(h.percent(readHeap()))
		onCollection(collected)
		select {
		case <-collected:
		case <-ctx.Done():
			return nil
		}
	}
}

// onCollection sends after the next collection has found an object dead that nobody holds.
func onCollection(collected chan<- struct{}) {
	sentinel := new([16]byte)
	runtime.AddCleanup(sentinel, func(c chan<- struct{}) {
		select {
		case c <- struct{}{}:
		default:
		}
	}, collected)
}

// Trim gives back to the system at once what is free in the heap. It collects, so it is for the end of a start-up.
func Trim() { debug.FreeOSMemory() }

// heap is what the last collection found.
type heap struct {
	live  uint64 // bytes of live objects
	roots uint64 // bytes of stacks and globals, on which the runtime applies the percentage as well
	scan  uint64 // bytes that a collection has to look at: stacks, globals, and objects up to their last pointer
}

func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/scan/total:bytes"},
	}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return heap{}
		}
	}
	return heap{live: s[0].Value.Uint64(), roots: s[1].Value.Uint64() + s[2].Value.Uint64(), scan: s[3].Value.Uint64()}
}

// percent is the GOGC that leaves the wanted headroom: the runtime's goal is live + (live+roots)·GOGC/100.
func (h Headroom) percent(p heap) int {
	if h.Min == 0 {
		h.Min = defaultMin
	}
	if h.Percent == 0 {
		h.Percent = defaultPercent
	}
	if p.live == 0 {
		return 100
	}
	room := max(h.Min, p.live/100*h.Percent, p.scan*h.Scanned/100)
	return int(min(max(room*100/(p.live+p.roots), minGOGC), maxGOGC))
}
