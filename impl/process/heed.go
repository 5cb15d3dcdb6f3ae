package process

import "context"

// Heed does something now, and again after each change, until ctx ends. changed is closed by the next change of what do
// reads; a change while do runs is not missed.
func Heed(ctx context.Context, changed func() <-chan struct{}, do func()) {
	for ctx.Err() == nil {
		next := changed()
		do()
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}
