package client

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// tap is a watch that takes down what goes through it. An event counts when the reader has taken it: what a reader left
// behind when it stopped is not in the recording. Stop returns when nothing more will be taken down.
type tap struct {
	in   watch.Interface
	rec  *Recording
	out  chan watch.Event
	stop chan struct{}
	once sync.Once
	done sync.WaitGroup
}

func newTap(in watch.Interface, rec *Recording) *tap {
	t := &tap{in: in, rec: rec, out: make(chan watch.Event), stop: make(chan struct{})}
	t.done.Go(t.run)
	return t
}

// ResultChan implements watch.Interface.
func (t *tap) ResultChan() <-chan watch.Event { return t.out }

// Stop implements watch.Interface.
func (t *tap) Stop() {
	t.once.Do(func() { close(t.stop) })
	t.in.Stop()
	t.done.Wait()
}

func (t *tap) run() {
	defer close(t.out)
	for {
		select {
		case <-t.stop:
			t.rec.add(Op{What: OpClose, Err: ByClient})
			return
		case ev, ok := <-t.in.ResultChan():
			if !ok {
				t.rec.add(Op{What: OpClose})
				return
			}
			undo := t.rec.event(ev)
			select {
			case t.out <- ev:
			case <-t.stop:
				undo()
				t.rec.add(Op{What: OpClose, Err: ByClient})
				return
			}
			if ev.Type == watch.Error {
				return // that is the end, whoever closes first
			}
		}
	}
}
